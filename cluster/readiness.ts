import { type Condition, LONGEST_MESSAGE, type ReadinessConditionType } from '../api/object.ts';
import { setCondition } from './update-object.ts';

/**
 * The readiness of an object, for tools that don't know its kind: Flux, Helm, Argo CD and `kubectl wait` read it from
 * the conditions Ready, Reconciling and Stalled (sigs.k8s.io/cli-utils, pkg/kstatus).
 */
export type Readiness =
  /** What the spec asks for is reached. */
  | { readonly kind: 'ready'; readonly message: string }
  /** It goes on by itself. */
  | { readonly kind: 'reconciling'; readonly reason: string; readonly message: string }
  /** It does not go on until somebody changes something. */
  | { readonly kind: 'stalled'; readonly reason: string; readonly message: string }
  /** Nothing is wrong, and nothing goes on, as somebody asked: a pool that is paused. */
  | { readonly kind: 'suspended'; readonly reason: string; readonly message: string };

/**
 * Sets the conditions of a readiness. Reconciling and Stalled are never both True: kstatus takes the one that comes
 * first.
 *
 * @param generation of the spec that it is about; undefined where the object has none.
 * @param now when it is so.
 * @returns the conditions with these three in their places, or at the end.
 */
export function setReadiness(
  conditions: readonly Condition[],
  readiness: Readiness,
  generation: number | undefined,
  now: Date,
): Condition[] {
  const { kind } = readiness;
  const reason = kind === 'ready' ? 'Ready' : readiness.reason;
  const message = readiness.message.slice(0, LONGEST_MESSAGE);
  const is = (type: ReadinessConditionType, holds: boolean, otherwise: string) => ({
    type,
    status: holds ? ('True' as const) : ('False' as const),
    reason,
    message: holds ? message : otherwise,
    observedGeneration: generation,
  });
  return [
    is('Ready', kind === 'ready', message),
    is('Reconciling', kind === 'reconciling', 'Nothing is under way'),
    is('Stalled', kind === 'stalled', 'Nothing has to be changed by anybody'),
  ].reduce<Condition[]>((all, condition) => setCondition(all, condition, now), [...conditions]);
}

/** @returns the conditions, each about this generation; unchanged where the object has none. */
export function observedAt(conditions: readonly Condition[], generation: number | undefined): Condition[] {
  return generation === undefined
    ? [...conditions]
    : conditions.map((condition) => ({ ...condition, observedGeneration: generation }));
}
