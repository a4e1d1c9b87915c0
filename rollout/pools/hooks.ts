import type { Node } from '../../api/kubernetes.ts';
import { annotations, hookPrefixes } from '../../api/names.ts';
import { plural } from '../../api/plural.ts';

/** Before or after a node is drained or rebooted. */
export type HookPhase = keyof typeof hookPrefixes;

/** The hooks of a pool: names that controllers of others clear on each node. */
export type Hooks = Readonly<Record<HookPhase, readonly string[]>>;

export const noHooks: Hooks = { before: [], after: [] };

/** What is requested of hooks on a node. */
export interface HookRequest {
  readonly phase: HookPhase;
  /** ms since the epoch. */
  readonly since: number;
  /** The hooks that nobody has cleared yet. */
  readonly pending: readonly string[];
}

/** Merge patch of a Node's annotations. */
export type AnnotationsPatch = Readonly<Record<string, string | null>>;

export type HookStep =
  /** All of them are cleared, or there are none. */
  | { readonly kind: 'done' }
  | { readonly kind: 'request'; readonly annotations: AnnotationsPatch }
  | { readonly kind: 'wait'; readonly request: HookRequest };

/** The name of an annotation after its prefix (Kubernetes, "Labels and Selectors", syntax). */
const NAME = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

/** @throws Error that names the invalid name. */
export function parseHooks(text: string): readonly string[] {
  const names = [...new Set(text.split(/[\s,]+/).filter((name) => name !== ''))];
  const bad = names.find((name) => !NAME.test(name));
  if (bad !== undefined)
    throw new Error(
      `${JSON.stringify(bad)} is no name of a hook: expected letters, digits, "-", "_" and "."`,
    );
  return names;
}

/** @returns what is requested on a node; undefined where nothing is. */
export function hookRequestOn({ metadata }: Pick<Node, 'metadata'>): HookRequest | undefined {
  const text = metadata.annotations?.[annotations.hooks];
  const [phase, since] = text?.split(' ') ?? [];
  if ((phase !== 'before' && phase !== 'after') || since === undefined) return undefined;
  return { phase, since: Date.parse(since) || 0, pending: namesOn(metadata.annotations, phase) };
}

/**
 * What is to be done about the hooks of one phase. A hook counts as cleared once its annotation is gone after it was
 * requested. One that the pool no longer names holds nothing; one that it names since counts from the next disruption.
 *
 * @param names the pool's hooks of the phase.
 * @param now ms since the epoch.
 */
export function hookStep(
  node: Pick<Node, 'metadata'>,
  phase: HookPhase,
  names: readonly string[],
  now: number,
): HookStep {
  if (names.length === 0) return { kind: 'done' };
  const request = hookRequestOn(node);
  if (request?.phase !== phase) {
    const requested = names.map((name) => [`${hookPrefixes[phase]}${name}`, 'requested']);
    const since = new Date(now).toISOString();
    return {
      kind: 'request',
      annotations: {
        ...withoutHooks(node),
        [annotations.hooks]: `${phase} ${since}`,
        ...Object.fromEntries(requested),
      },
    };
  }
  const pending = request.pending.filter((name) => names.includes(name));
  return pending.length === 0 ? { kind: 'done' } : { kind: 'wait', request: { ...request, pending } };
}

/** @returns what removes every trace of hooks from a node. */
export function withoutHooks({ metadata }: Pick<Node, 'metadata'>): AnnotationsPatch {
  const all = Object.keys(metadata.annotations ?? {});
  const ours = all.filter(
    (key) =>
      key === annotations.hooks || Object.values(hookPrefixes).some((prefix) => key.startsWith(prefix)),
  );
  return Object.fromEntries(ours.map((key) => [key, null]));
}

/** @returns what a node waits for, as a clause that follows its name. */
export function formatHooks({ phase, since, pending }: HookRequest): string {
  const when = phase === 'before' ? 'before it is drained or rebooted' : 'before it is schedulable again';
  return `has been waiting since ${new Date(since).toISOString()} for ${plural(pending.length, 'hook')} to be cleared ${when}: ${pending.join(', ')}`;
}

function namesOn(on: Readonly<Record<string, string>> | undefined, phase: HookPhase): readonly string[] {
  const prefix = hookPrefixes[phase];
  return Object.keys(on ?? {})
    .flatMap((key) => (key.startsWith(prefix) ? [key.slice(prefix.length)] : []))
    .sort();
}
