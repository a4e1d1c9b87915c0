import type { Pod } from '../../api/kubernetes.ts';
import type { DrainOptions } from '../options.ts';

/** What a drain does with one pod. */
export type PodVerdict =
  | { readonly kind: 'evict' }
  /** Evicted already; it ends by itself. */
  | { readonly kind: 'terminating' }
  /** It would lose something that the settings keep: somebody has to decide. */
  | { readonly kind: 'refuse'; readonly why: string }
  | { readonly kind: 'leave'; readonly why: 'finished' | 'mirror' | 'daemonset' | 'lost' };

/** The kubelet's own copy of a static pod (kubernetes.io/docs, "Static Pods"): the API can't evict it. */
const MIRROR_POD = 'kubernetes.io/config.mirror';

/**
 * Decides what a drain does with a pod; the rules are those of `kubectl drain --ignore-daemonsets`, with `--force` and
 * `--delete-emptydir-data` as settings (MCO's drain controller sets both).
 *
 * @param lost the moment, in ms since the epoch, where the node is one that nobody hears from.
 */
export function podVerdict(
  { metadata, spec, status }: Pod,
  settings: Pick<DrainOptions, 'evictUnmanagedPods' | 'evictEmptyDirPods'>,
  lost?: { readonly now: number },
): PodVerdict {
  if (metadata.annotations?.[MIRROR_POD] !== undefined) return { kind: 'leave', why: 'mirror' };
  if (status?.phase === 'Succeeded' || status?.phase === 'Failed') return { kind: 'leave', why: 'finished' };
  const controller = metadata.ownerReferences?.find((owner) => owner.controller === true);
  // A DaemonSet's pods tolerate the cordon and would come back at once; the daemon itself is one of them.
  if (controller?.kind === 'DaemonSet') return { kind: 'leave', why: 'daemonset' };
  if (metadata.deletionTimestamp !== undefined) {
    // A deletionTimestamp is when the grace period ends, not when somebody asked.
    const overdue = lost !== undefined && Date.parse(metadata.deletionTimestamp) <= lost.now;
    return overdue ? { kind: 'leave', why: 'lost' } : { kind: 'terminating' };
  }
  if (controller === undefined && !settings.evictUnmanagedPods) {
    return { kind: 'refuse', why: 'no controller would make it anew' };
  }
  if (spec.volumes?.some(({ emptyDir }) => emptyDir !== undefined) && !settings.evictEmptyDirPods) {
    return { kind: 'refuse', why: 'it has data in an emptyDir volume' };
  }
  return { kind: 'evict' };
}
