import { type Pod, type PodDisruptionBudget, PodDisruptionBudgets, Pods } from '../../api/kubernetes.ts';
import { matchesSelector } from '../../api/label-selector.ts';
import type { MachineConfigNodeStatus } from '../../api/machine-config-node.ts';
import { plural } from '../../api/plural.ts';
import {
  type ApiClient,
  ApiError,
  ApiUnreachable,
  isConflict,
  isNotFound,
  isTooManyRequests,
} from '../../cluster/api-client.ts';
import { failureOf, wordsOf } from '../../cluster/failure.ts';
import { inParallel } from '../in-parallel.ts';
import type { DrainOptions } from '../options.ts';

/** How far a node's drain has come. */
export type DrainProgress =
  | { readonly kind: 'drained' }
  | {
      readonly kind: 'draining';
      /** Pods that were evicted and have not ended yet. */
      readonly terminating: readonly string[];
      /** Pods that may not be evicted yet, and why. */
      readonly blocked: readonly BlockedPod[];
      /** ms for which the API server asks to wait before the evictions are requested again; absent: for none. */
      readonly retryAfterMs?: number;
    };

type BlockedPod = NonNullable<MachineConfigNodeStatus['drain']>['blockedBy'][number];

/** When a drain takes place; both in ms since the epoch. */
export interface DrainTimes {
  /** Since when the node is cordoned. */
  readonly cordonedAt?: number;
  /**
   * The current time, where the node is not Ready: pods that should have ended by then end only when it comes back, and
   * are not waited for.
   */
  readonly lostAt?: number;
}

/** Concurrent evictions; the API server's priority levels are shared with other clients. */
const PARALLEL_EVICTIONS = 10;

/**
 * Performs one step of a drain: requests the eviction of every pod that has to leave and waits for none of them. Call
 * it again until the node is drained. It keeps no state, so another leader can continue
 * (docs/decisions/0030-no-eviction-requests.md has why it creates no EvictionRequests).
 *
 * An eviction that fails blocks its own pod, whatever the reason is: several budgets for one pod are an error 500, and
 * a webhook may answer anything. All pods are tried each time.
 *
 * @param node that is cordoned.
 * @throws ApiError when the pods can't be listed.
 */
export async function drainStep(
  client: ApiClient,
  node: string,
  options: DrainOptions,
  signal: AbortSignal,
  times: DrainTimes = {},
): Promise<DrainProgress> {
  const { items } = await client.list(Pods, { fieldSelector: `spec.nodeName=${node}`, signal });
  const verdicts = items.map((pod) => ({ pod, verdict: podVerdict(pod, options, times) }));
  const terminating = verdicts
    .filter(({ verdict }) => verdict.kind === 'terminating')
    .map(({ pod }) => nameOf(pod));
  const toEvict = verdicts.filter(({ verdict }) => verdict.kind === 'evict').map(({ pod }) => pod);
  const blocked = verdicts.flatMap(({ pod, verdict }) =>
    verdict.kind === 'refuse' ? [{ pod: nameOf(pod), reason: verdict.why }] : [],
  );
  const refusals = new Map<Pod, Refusal | undefined>();
  await inParallel(toEvict, PARALLEL_EVICTIONS, async (pod) => {
    refusals.set(pod, await evict(client, pod, options, signal));
  });
  const waits: number[] = [];
  for (const pod of toEvict) {
    const refusal = refusals.get(pod);
    if (refusal === undefined) terminating.push(nameOf(pod));
    else {
      blocked.push({ pod: nameOf(pod), reason: refusal.why });
      waits.push(refusal.retryAfterMs ?? 0);
    }
  }
  if (terminating.length + blocked.length === 0) return { kind: 'drained' };
  const wait = waits.length === 0 ? 0 : Math.min(...waits);
  return {
    kind: 'draining',
    terminating: terminating.toSorted(),
    blocked,
    ...(wait > 0 ? { retryAfterMs: wait } : {}),
  };
}

/**
 * When to check a node that is being drained again: soon at first, less often the longer it takes.
 *
 * @param elapsed ms since the node was taken.
 * @param asked ms for which the API server asks to wait.
 * @returns ms
 */
export function drainRetryAfter(elapsed: number, { retrySeconds }: DrainOptions, asked = 0): number {
  const { min, max } = retrySeconds;
  return Math.min(Math.max(elapsed / 10, min * 1000, asked), max * 1000);
}

/** @returns what a drain waits for, bounded in length; it completes "Node NAME …". */
export function formatDrain({ terminating, blocked }: DrainProgress & { kind: 'draining' }): string {
  const parts = [
    ...blocked.slice(0, 3).map(({ pod, reason }) => `pod ${pod} can't be evicted: ${reason}`),
    ...(blocked.length > 3
      ? [`${plural(blocked.length - 3, 'more pod', 'more pods')} can't be evicted`]
      : []),
    ...(terminating.length > 0
      ? [`${plural(terminating.length, 'pod')} still terminating: ${terminating.slice(0, 3).join(', ')}`]
      : []),
  ];
  return ['is being drained', ...parts].join('; ');
}

interface Refusal {
  readonly why: string;
  readonly retryAfterMs?: number | undefined;
}

/** @returns undefined when the pod goes; else why it may not yet. */
async function evict(
  client: ApiClient,
  pod: Pod,
  { gracePeriodSeconds }: DrainOptions,
  signal: AbortSignal,
): Promise<Refusal | undefined> {
  const { name, namespace = 'default', uid } = pod.metadata;
  try {
    await client.evict({ namespace, name, uid }, { gracePeriodSeconds, signal });
    return undefined;
  } catch (error) {
    if (isNotFound(error) || (isConflict(error) && (await isAnother(client, pod, signal)))) return undefined;
    if (!(error instanceof ApiError || error instanceof ApiUnreachable)) throw error;
    const why = isTooManyRequests(error)
      ? await whyLater(client, pod, error, signal)
      : wordsOf(error instanceof ApiError ? (error.words ?? `HTTP ${error.status}`) : error.message);
    return { why, retryAfterMs: failureOf(error).retryAfterMs };
  }
}

/** @returns whether another pod has the name by now: a StatefulSet's, which may be on another node. */
async function isAnother(client: ApiClient, { metadata }: Pod, signal: AbortSignal): Promise<boolean> {
  const { name, namespace = 'default', uid } = metadata;
  const there = await client.findMetadata(Pods, name, { namespace, signal });
  return there?.metadata.uid !== uid;
}

/**
 * A budget asks to retry later, and so may a webhook. The answer names a budget in prose only; which ones cover the pod
 * is plain from the objects.
 */
async function whyLater(client: ApiClient, pod: Pod, error: unknown, signal: AbortSignal): Promise<string> {
  const words = error instanceof ApiError ? error.words : undefined;
  const said = words === undefined ? 'the API server asks to retry later' : wordsOf(words);
  const budgets = await budgetsOf(client, pod, signal).catch(() => {
    signal.throwIfAborted();
    return [];
  });
  const isTheirs =
    words === undefined || budgets.some(({ status }) => (status?.disruptionsAllowed ?? 0) === 0);
  return isTheirs && budgets.length > 0 ? formatBudgets(budgets) : said;
}

async function budgetsOf(client: ApiClient, pod: Pod, signal: AbortSignal): Promise<PodDisruptionBudget[]> {
  const { namespace = 'default' } = pod.metadata;
  const { items } = await client.list(PodDisruptionBudgets, { namespace, signal });
  return coveringBudgets(items, pod);
}

/** @param all budgets of the pod's namespace. @returns those that cover the pod. */
export function coveringBudgets(
  all: readonly PodDisruptionBudget[],
  { metadata: { labels = {} } }: Pod,
): PodDisruptionBudget[] {
  // policy/v1: an empty selector matches every pod of the namespace, an absent one none.
  return all.filter(({ spec }) => spec.selector !== undefined && matchesSelector(spec.selector, labels));
}

/** @returns budgets that cover a pod, with what each still allows. */
export function formatBudgets(budgets: readonly PodDisruptionBudget[]): string {
  const each = budgets.map(
    ({ metadata, status }) =>
      `${metadata.name} (allows ${plural(status?.disruptionsAllowed ?? 0, 'disruption')})`,
  );
  return `PodDisruptionBudget ${each.toSorted().join(', ')}`;
}

/** @returns namespace/name. */
export function nameOf({ metadata }: Pod): string {
  return `${metadata.namespace ?? 'default'}/${metadata.name}`;
}

/** What a drain does with one pod. */
export type PodVerdict =
  | { readonly kind: 'evict' }
  /** Evicted already; it ends by itself. */
  | { readonly kind: 'terminating' }
  /** It would lose something that the settings keep: somebody has to decide. */
  | { readonly kind: 'refuse'; readonly why: string }
  | { readonly kind: 'leave'; readonly why: 'finished' | 'mirror' | 'daemonset' | 'comes back' | 'lost' };

/** The kubelet's own copy of a static pod (kubernetes.io/docs, "Static Pods"): the API can't evict it. */
const MIRROR_POD = 'kubernetes.io/config.mirror';

/**
 * Decides what a drain does with a pod; the rules are those of `kubectl drain --ignore-daemonsets`, with `--force` and
 * `--delete-emptydir-data` as settings (MCO's drain controller sets both).
 *
 * What came to the node after it was cordoned, because it tolerates that, comes again as often as it is evicted, and a
 * drain that waited for it would not end (kubectl lists the pods once; Cluster API skips such pods).
 */
export function podVerdict(
  { metadata, spec, status }: Pod,
  settings: Pick<DrainOptions, 'evictUnmanagedPods' | 'evictEmptyDirPods'>,
  { cordonedAt, lostAt }: DrainTimes = {},
): PodVerdict {
  if (metadata.annotations?.[MIRROR_POD] !== undefined) return { kind: 'leave', why: 'mirror' };
  if (status?.phase === 'Succeeded' || status?.phase === 'Failed') return { kind: 'leave', why: 'finished' };
  const controller = metadata.ownerReferences?.find((owner) => owner.controller === true);
  // A DaemonSet's pods tolerate the cordon and would come back at once; the daemon itself is one of them.
  if (controller?.kind === 'DaemonSet') return { kind: 'leave', why: 'daemonset' };
  if (cameAfter(metadata, cordonedAt) && toleratesCordon(spec)) return { kind: 'leave', why: 'comes back' };
  if (metadata.deletionTimestamp !== undefined) {
    // A deletionTimestamp is when the grace period ends, not when somebody asked.
    const overdue = lostAt !== undefined && Date.parse(metadata.deletionTimestamp) <= lostAt;
    return overdue ? { kind: 'leave', why: 'lost' } : { kind: 'terminating' };
  }
  if (controller === undefined && !settings.evictUnmanagedPods) {
    return { kind: 'refuse', why: 'no controller would create it again' };
  }
  if (spec.volumes?.some(({ emptyDir }) => emptyDir !== undefined) && !settings.evictEmptyDirPods) {
    return { kind: 'refuse', why: 'it has data in an emptyDir volume' };
  }
  return { kind: 'evict' };
}

/**
 * ms by which the clock of the API server, which says when a pod was created, may be ahead of the one that says when a
 * node was cordoned.
 */
const CLOCK_DIFFERENCE = 10_000;

function cameAfter({ creationTimestamp }: Pod['metadata'], cordonedAt: number | undefined): boolean {
  if (creationTimestamp === undefined || cordonedAt === undefined) return false;
  return Date.parse(creationTimestamp) > cordonedAt + CLOCK_DIFFERENCE;
}

/** The taint of a cordoned node (kubernetes.io/docs, "Taints and Tolerations"): it has no value. */
const CORDON_TAINT = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' };

function toleratesCordon({ tolerations = [] }: Pod['spec']): boolean {
  return tolerations.some(({ key = '', operator = 'Equal', value = '', effect = '' }) => {
    if (effect !== '' && effect !== CORDON_TAINT.effect) return false;
    if (operator === 'Exists') return key === '' || key === CORDON_TAINT.key;
    return operator === 'Equal' && key === CORDON_TAINT.key && value === '';
  });
}
