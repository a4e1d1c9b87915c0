import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { plural } from '../../api/plural.ts';
import { provenNodes } from './choose-nodes.ts';
import type { NodeState } from './node-state.ts';
import { isUnhealthy } from './node-step.ts';
import type { PoolSettings } from './pool-settings.ts';

/** Whether failed nodes stop a rollout. */
export type Halt =
  | { readonly kind: 'none' }
  /**
   * `why`: for the pool's conditions. `mayRecover`: without the failures of live updates the rollout would continue, so
   * the nodes that these left between two states may reboot into their target.
   */
  | { readonly kind: 'halted'; readonly why: string; readonly mayRecover: boolean };

export interface HaltInputs {
  readonly pool: Pick<MachineConfigPool, 'status'>;
  /** Every node that was looked at, with its target assigned. */
  readonly states: readonly NodeState[];
  /** How many further nodes run the target. */
  readonly settled: number;
  readonly settings: Pick<PoolSettings, 'soak' | 'failureThreshold' | 'unhealthyAfter'>;
}

/**
 * Counts the nodes that failed at the pool's target and compares them with its failure threshold.
 *
 * A node whose live update failed is one of them, even when a reboot brought it to the target: what failed there most
 * likely fails on every node, and each would reboot for it. It stops nothing once no other node is left to update.
 *
 * @param now ms since the epoch.
 */
export function haltOf({ pool, states, settled, settings }: HaltInputs, now: number): Halt {
  const broken = states.flatMap((node) => {
    if (hasFailed(node)) return [node.name];
    if (retriesTarget(node)) return [`${node.name} (retrying)`];
    return isUnhealthy(node, settings.unhealthyAfter, now)
      ? [`${node.name} (not Ready since its update)`]
      : [];
  });
  const fellBack = states.some(isLeftToUpdate)
    ? states.flatMap((node) => (countsAsFallback(node, pool) ? [formatFallback(node)] : []))
    : [];
  const failed = [...broken, ...fellBack].toSorted();
  if (failed.length === 0) return { kind: 'none' };
  const proven = provenNodes(states, { settled, soak: settings.soak, now }) > 0;
  const threshold = settings.failureThreshold[proven ? 'proven' : 'unproven'];
  if (failed.length < threshold) return { kind: 'none' };
  return {
    kind: 'halted',
    why: `the rollout has stopped: ${plural(failed.length, 'node')} failed and the threshold is ${threshold}: ${failed.join(', ')}`,
    mayRecover: broken.length < threshold,
  };
}

/** @returns whether a failed live update left the node between two states, so that it waits for a reboot. */
export function awaitsRecovery({
  update: { assigned, progress, liveFailure },
  claims: { away },
}: NodeState): boolean {
  const isBetween = liveFailure !== undefined && liveFailure.endedAt === undefined;
  return assigned && away === undefined && isBetween && progress.kind === 'staged';
}

/**
 * @returns whether the node takes a target again at which it failed, because somebody requested it. It counts as failed
 *   until it runs the target: the first node that failed there shows nothing to the others by trying once more.
 */
export function retriesTarget({
  update: { assigned, progress, failedAtTarget },
  claims: { away },
}: NodeState): boolean {
  const isUnderWay = progress.kind === 'preparing' || progress.kind === 'staged';
  return assigned && away === undefined && failedAtTarget && isUnderWay;
}

/**
 * @returns what happened to a node that runs its target although the live update to it failed; undefined for any other.
 */
export function recoveryOf({
  name,
  update: { assigned, progress, liveFailure },
}: NodeState): string | undefined {
  return assigned && progress.kind === 'updated' && liveFailure !== undefined
    ? `${name} rebooted because its live update failed: ${liveFailure.why}`
    : undefined;
}

function hasFailed({ update: { assigned, progress }, claims: { away } }: NodeState): boolean {
  return assigned && away === undefined && progress.kind === 'degraded' && progress.ofAnother !== true;
}

/** A node whose live update failed ends with its reboot, whether or not the rollout has stopped. */
function isLeftToUpdate({
  update: { assigned, progress, liveFailure },
  claims: { away },
}: NodeState): boolean {
  return away === undefined && liveFailure === undefined && !(assigned && progress.kind === 'updated');
}

/** ms; the times of failures come from the clocks of nodes, that of the condition from the operator's. */
const CLOCKS_DIFFER_BY = 600_000;

/**
 * A pool's condition Updated changes when a rollout starts and when it is complete. So a failure before its last change
 * belongs to a rollout that an admin let continue to its end, and stops no node that joins the pool later.
 */
function countsAsFallback(node: NodeState, { status }: HaltInputs['pool']): boolean {
  const { assigned, progress, liveFailure } = node.update;
  const { away } = node.claims;
  if (!assigned || away !== undefined || liveFailure === undefined) return false;
  if (progress.kind === 'degraded' || retriesTarget(node)) return false;
  const updated = status?.conditions?.find(({ type }) => type === 'Updated');
  if (liveFailure.endedAt === undefined || updated === undefined) return true;
  return liveFailure.endedAt + CLOCKS_DIFFER_BY >= Date.parse(updated.lastTransitionTime);
}

function formatFallback({ name, update: { progress, liveFailure } }: NodeState): string {
  const then = progress.kind === 'updated' ? 'it rebooted instead' : 'it reboots instead';
  return `${name} (its live update failed: ${liveFailure?.why ?? ''}; ${then})`;
}
