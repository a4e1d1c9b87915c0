import { type NodeConditionType, PREPARE_FAILED, PREPARE_REFUSED } from '../api/machine-config-node.ts';
import type { Condition } from '../api/object.ts';
import type { Readiness } from './readiness.ts';

/** What the stages of an update report while they last, the last one first. */
const STAGES = [
  'UpdatePostActionComplete',
  'RebootedNode',
  'UpdateExecuted',
] as const satisfies readonly NodeConditionType[];

/**
 * The readiness of a node. A node that failed stays degraded while it stages another target, and is reconciling then.
 *
 * @param conditions of the MachineConfigNode, without Ready, Reconciling and Stalled.
 */
export function nodeReadiness(conditions: readonly Condition[]): Readiness {
  const condition = (of: NodeConditionType) => conditions.find(({ type }) => type === of);
  const prepared = condition('UpdatePrepared');
  if (prepared?.status === 'False' && prepared.reason === PREPARE_REFUSED)
    return { kind: 'stalled', reason: prepared.reason, message: prepared.message };
  const underWay = STAGES.map(condition).find((stage) => stage?.status === 'Unknown');
  const isPreparing =
    prepared?.status === 'False' && (prepared.reason === 'Preparing' || prepared.reason === PREPARE_FAILED);
  const degraded = condition('NodeDegraded');
  if (degraded?.status === 'True' && underWay === undefined && !isPreparing)
    return { kind: 'stalled', reason: degraded.reason, message: degraded.message };
  const failing = [condition('StepsFailing'), condition('DaemonStepsFailing')].find(
    (each) => each?.status === 'True',
  );
  if (failing !== undefined && underWay === undefined)
    return { kind: 'stalled', reason: failing.reason, message: failing.message };
  const updated = condition('Updated');
  if (updated?.status === 'True') return { kind: 'ready', message: updated.message };
  const { reason = 'Unknown', message = 'The daemon has not reported yet' } = underWay ?? prepared ?? {};
  // The target is on the disk; what is missing is the operator's permission.
  return { kind: 'reconciling', reason: reason === 'Prepared' ? 'AwaitingGrant' : reason, message };
}
