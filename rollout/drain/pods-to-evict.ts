import type { Pod } from '../../api/kubernetes.ts';

/** What a drain does with one pod. */
export type PodVerdict =
  | { readonly kind: 'evict' }
  /** Evicted already; it ends by itself. */
  | { readonly kind: 'terminating' }
  | { readonly kind: 'leave'; readonly why: 'finished' | 'mirror' | 'daemonset' | 'unmanaged' };

/** The kubelet's own copy of a static pod (kubernetes.io/docs, "Static Pods"): the API can't evict it. */
const MIRROR_POD = 'kubernetes.io/config.mirror';

/**
 * Decides what a drain does with a pod; the rules are those of `kubectl drain --force --ignore-daemonsets
 * --delete-emptydir-data`, which MCO's drain controller uses.
 *
 * @param evictUnmanaged whether pods that no controller would make anew are evicted as well.
 */
export function podVerdict(pod: Pod, evictUnmanaged: boolean): PodVerdict {
  const { metadata, status } = pod;
  if (metadata.annotations?.[MIRROR_POD] !== undefined) return { kind: 'leave', why: 'mirror' };
  if (status?.phase === 'Succeeded' || status?.phase === 'Failed') return { kind: 'leave', why: 'finished' };
  const controller = metadata.ownerReferences?.find((owner) => owner.controller === true);
  // A DaemonSet's pods tolerate the cordon and would come back at once; the daemon itself is one of them.
  if (controller?.kind === 'DaemonSet') return { kind: 'leave', why: 'daemonset' };
  if (controller === undefined && !evictUnmanaged) return { kind: 'leave', why: 'unmanaged' };
  return metadata.deletionTimestamp === undefined ? { kind: 'evict' } : { kind: 'terminating' };
}
