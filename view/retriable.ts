import { isRetryOf, parseRetry } from '../api/annotation-requests.ts';
import type { FailureReason, MachineConfigNode, UpdateRecord } from '../api/machine-config-node.ts';
import { annotations } from '../api/names.ts';
import { failureAtTarget, isAtTarget, isRollingBack, stageOf } from '../rollout/pools/progress.ts';
import { trueCondition } from './conditions.ts';

/** What a request to retry would be about. */
export type Retriable =
  /** The update that failed. `isRequested`: somebody requested a retry of it, which has not failed or succeeded yet. */
  | { readonly kind: 'failed'; readonly update: UpdateRecord; readonly isRequested: boolean }
  | { readonly kind: 'none'; readonly why: string };

/** @returns the failure of a node that it doesn't try again by itself. */
export function retriableOn(node: MachineConfigNode): Retriable {
  const { spec, status } = node;
  const update = failureAtTarget(spec, status);
  const problem = trueCondition(status?.conditions, 'NodeDegraded')?.message;
  if (update !== undefined && !isAtTarget(spec, status))
    return { kind: 'failed', update, isRequested: isRequested(node, update) };
  if (problem === undefined) return { kind: 'none', why: 'its last update did not fail' };
  if (update !== undefined)
    return { kind: 'none', why: `it runs its target, so there is none to take again: ${problem}` };
  const { config, result = 'Succeeded' } = status?.lastUpdate ?? {};
  return result === 'Succeeded'
    ? { kind: 'none', why: `its last update did not fail; it is degraded for another reason: ${problem}` }
    : {
        kind: 'none',
        why: `the update to ${config} failed; its target is ${spec.configVersion.desired} now, which it takes without a retry`,
      };
}

/**
 * @returns what to do about a node that failed, as a clause; undefined where its message has it, or no
 * update failed.
 */
export function adviceOn(node: MachineConfigNode): string | undefined {
  const { spec, status, metadata } = node;
  const degraded = trueCondition(status?.conditions, 'NodeDegraded');
  if (degraded === undefined) return undefined;
  const otherwise = `fix the MachineConfig, or roll back: shale rollback ${spec.pool.name}`;
  const retry = `fix the node and run shale retry ${metadata.name}, `;
  if (isRollingBack(stageOf(status?.conditions))) return `once it has rolled back, ${retry}${otherwise}`;
  const isDrift = degraded.reason === ('ConfigDrift' satisfies FailureReason);
  const isAbout = isAtTarget(spec, status) || isDrift || (status?.changedByHand?.count ?? 0) > 0;
  if (isAbout) return undefined;
  return retriableOn(node).kind === 'failed' ? `${retry}${otherwise}` : otherwise;
}

function isRequested({ metadata }: MachineConfigNode, update: UpdateRecord): boolean {
  const text = metadata.annotations?.[annotations.retry];
  if (text === undefined) return false;
  try {
    return isRetryOf(parseRetry(text), update);
  } catch {
    // What is wrong with it is in the event of the daemon.
    return false;
  }
}
