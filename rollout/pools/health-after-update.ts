import type { NodeState } from './node-state.ts';

/**
 * Since when a node is down that is down because of its update, as far as times can tell: it was Ready when the update
 * began, and was not seen Ready again, or fell within the pool's patience after the update had ended. A node that broke
 * later, or that was broken before, says nothing about the target.
 *
 * @param patience ms.
 * @returns ms since the epoch; undefined for a node that is Ready, or whose trouble is of other making.
 */
export function downSince(node: NodeState, patience: number): number | undefined {
  const { assigned, away, ready, notReadySince, progress } = node;
  if (!assigned || away !== undefined || ready || notReadySince === undefined) return undefined;
  const began = updateBegan(node);
  if (began === undefined || notReadySince < wholeSeconds(began)) return undefined;
  if (progress.kind !== 'updated' || progress.since === undefined) return notReadySince;
  // The rollout lifts its cordon and takes its leave back as soon as the node is Ready.
  const neverBack = node.work.cordon !== undefined || node.work.grant !== undefined;
  if (neverBack) return progress.since;
  return notReadySince - progress.since <= patience ? notReadySince : undefined;
}

/** @returns whether the node has been down for longer than the pool's patience because of its update. @param now ms since the epoch. */
export function isUnhealthy(node: NodeState, patience: number, now: number): boolean {
  const since = downSince(node, patience);
  return since !== undefined && since + patience <= now;
}

/** Times of conditions have no finer ones (metav1.Time). */
function wholeSeconds(ms: number): number {
  return Math.floor(ms / 1000) * 1000;
}

function updateBegan({ progress, work, lease }: NodeState): number | undefined {
  if (progress.kind === 'updated') return progress.startedAt;
  // What a node without leave has not begun can't have broken it.
  return work.grant !== undefined && lease.by === 'us' ? lease.since : undefined;
}
