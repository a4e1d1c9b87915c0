import { done, type Result, requeueAfter } from '../../cluster/controller.ts';
import {
  type FailingStep,
  type FailingSteps,
  formatFailing,
  type StepObject,
  StepsFailed,
} from '../../cluster/failing-steps.ts';
import type { NodeStep } from '../pools/node-step.ts';

/**
 * What the steps of a node do; each fails and is reported by itself. Steps that follow one another while a node is led
 * to its target are one: what prevents them has not ended with the first of them.
 */
const OF_STEPS = {
  take: 'carrying out its update',
  drain: 'carrying out its update',
  'keep-lease': 'carrying out its update',
  finish: 'ending its update',
  'back-out': 'putting it back in service',
  'let-go': 'releasing it',
  suspend: 'withdrawing its permission to update',
  none: 'leaving it alone',
} as const satisfies Readonly<Record<NodeStep['kind'], string>>;

/** What else a pass over a pool writes on a node. */
const OF_WRITES = {
  create: 'creating its MachineConfigNode',
  assign: 'assigning its target',
  admit: 'removing its startup taint',
} as const;

const DOING = { ...OF_STEPS, ...OF_WRITES };
export type NodeTaskKind = keyof typeof DOING;

const OF_PASSES: ReadonlySet<string> = new Set(Object.values(DOING));

/** @returns what a pass does on a node, as failures name it. */
export function doingOnNode(kind: NodeTaskKind): string {
  return DOING[kind];
}

/** @returns whether a step that fails is one that passes over pools take on nodes. */
export function isOfPass({ object, doing }: FailingStep): boolean {
  return object.kind === 'Node' && OF_PASSES.has(doing);
}

export interface AttemptParts {
  readonly failing: FailingSteps;
  /** ms since the epoch. */
  readonly now: () => number;
}

/** What a pass met that could not be done. */
export interface Attempts {
  readonly errors: unknown[];
  /** ms after which the next pass is needed; undefined: not for this. */
  readonly waits: (number | undefined)[];
}

/**
 * Takes one step, and takes down how it ends. After a failure it waits for its back-off, and for what the API server
 * asks for, while everything else goes on.
 *
 * @returns how the step fails, also while it waits; undefined once it is taken.
 * @throws the signal's reason.
 */
export async function attempt(
  { failing, now }: AttemptParts,
  { object, doing }: { readonly object: StepObject; readonly doing: string },
  { errors, waits }: Attempts,
  signal: AbortSignal,
  work: () => Promise<void>,
): Promise<FailingStep | undefined> {
  const before = failing.find(object, doing);
  if (before !== undefined && before.retryAt > now()) {
    waits.push(before.retryAt - now());
    return before;
  }
  try {
    await work();
  } catch (error) {
    signal.throwIfAborted();
    errors.push(error);
    const step = failing.failed(object, doing, error);
    waits.push(step.retryAt - now());
    return step;
  }
  failing.over(object, doing);
  return undefined;
}

/**
 * Ends a pass that took its steps one by one.
 *
 * @returns when the next one is needed. @throws StepsFailed when something could not be done.
 */
export function endAttempts({ errors, waits }: Attempts): Result {
  const next = waits.filter((after) => after !== undefined);
  const after = next.length === 0 ? undefined : Math.min(...next);
  if (errors.length > 0) throw new StepsFailed(errors, after ?? 0);
  return after === undefined ? done : requeueAfter(after);
}

/**
 * @param holder of the node's lease, if it is the operator.
 * @returns what people read of a node whose step fails; undefined for what is over in a moment.
 */
export function noteOfFailure(step: FailingStep, holder: string | undefined): string | undefined {
  if (step.failure.kind === 'Conflict' && !step.isReported) return undefined;
  const held = holder === undefined ? [] : [`${holder} holds its lease meanwhile`];
  return [formatFailing(step), ...held].join('; ');
}
