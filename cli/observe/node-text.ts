import { formatDuration } from '../../api/duration.ts';
import { inOneLine } from '../../api/visible-text.ts';
import type { NodeView } from '../../view/schemas.ts';
import { formatBytes } from '../command-line/quantities.ts';

/**
 * @returns the state of a node, and what it does or waits for, in one line. @param now see formatReason.
 */
export function formatSituation(node: NodeView, now: number | undefined): string {
  return inOneLine([node.state, ...reasonsOf(node, now)].join(': '));
}

/**
 * @returns what a node does or waits for, the reason first; '' for nothing. @param now ms since the epoch; undefined:
 * with the time at which it ends in place of what is left.
 */
export function formatReason(node: NodeView, now: number | undefined): string {
  const skipped =
    node.state === 'updated' && node.obstacle !== undefined ? [`skipped: ${node.obstacle}`] : [];
  const parts = [...reasonsOf(node, now), ...skipped, stagingOf(node), flagsOf(node), node.actions];
  return parts.filter((part) => part !== undefined && part !== '').join('; ');
}

function reasonsOf({ what, verification }: NodeView, now: number | undefined): string[] {
  const reason = what === undefined ? [] : [what];
  if (verification?.deadline === undefined) return reason;
  if (now === undefined) return [[...reason, `until ${verification.deadline} at the latest`].join('; ')];
  const left = Date.parse(verification.deadline) - now;
  return [[...reason, left <= 0 ? 'no time left' : `${formatDuration(left)} left`].join('; ')];
}

/** @returns who handed a node over for its update. */
export function formatHandover({ owner, machine, since }: NonNullable<NodeView['handedOver']>): string {
  return `by Cluster API (${owner}), Machine ${machine}, since ${since}`;
}

/** @returns that the node is not ready or cordoned; '' for neither. */
export function flagsOf({ ready, notReady, cordoned }: NodeView): string {
  // One line for each node; the output as JSON has all of them.
  const [why, ...more] = notReady?.split('\n') ?? [];
  const away = why === undefined ? 'not ready' : `not ready: ${why}${more.length > 0 ? ' …' : ''}`;
  return [...(ready ? [] : [away]), ...(cordoned ? ['cordoned'] : [])].join(', ');
}

/** @returns how much of the target is staged. */
export function stagingOf({ state, staging }: NodeView): string | undefined {
  if (state !== 'staging' || staging === undefined || staging.bytesTotal === 0) return undefined;
  const percent = Math.floor((staging.bytesDone / staging.bytesTotal) * 100);
  return `${percent}% of ${formatBytes(staging.bytesTotal)}`;
}
