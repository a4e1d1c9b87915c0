import {
  type MachineConfigNodeStatus,
  MOST_BLOCKING_PODS,
  type NodeConditionType,
} from '../../api/machine-config-node.ts';
import { type Condition, isReported } from '../../api/object.ts';
import { setCondition } from '../../cluster/update-object.ts';
import { type DrainProgress, formatDrain } from './drain-step.ts';

/** How far a cordoned node is, for its MachineConfigNode. */
export interface CordonReport {
  /** Under which lease, and for which update. */
  readonly why: string;
  /** `unneeded`: the plan, or a cluster of one node, asks for no drain. */
  readonly drain: DrainProgress | { readonly kind: 'unneeded' };
  /** The drain takes longer than drains should. */
  readonly isStuck: boolean;
}

/** The conditions that MCO's drain controller writes; every other one is the daemon's (daemon/status.ts). */
const OURS: readonly string[] = ['Cordoned', 'Drained'] satisfies readonly NodeConditionType[];

/**
 * @param status as the daemon reported it; undefined where it has not reported yet, and stays so.
 * @param now the time of conditions that change.
 * @returns the status with the conditions of cordon and drain.
 */
export function withCordon(
  status: MachineConfigNodeStatus | undefined,
  { why, drain, isStuck }: CordonReport,
  now: Date,
): MachineConfigNodeStatus | undefined {
  if (!isReported(status)) return undefined;
  const cordoned = { type: 'Cordoned', status: 'True', reason: 'Updating', message: why } as const;
  const conditions = setCondition(status.conditions ?? [], cordoned, now);
  const drained = drainedCondition(drain, isStuck);
  return {
    ...withoutDrain(status),
    conditions: drained === undefined ? conditions : setCondition(conditions, drained, now),
    ...(drain.kind === 'draining' && drain.blocked.length > 0
      ? { drain: { blockedBy: drain.blocked.slice(0, MOST_BLOCKING_PODS) } }
      : {}),
  };
}

function withoutDrain({ drain: _, ...status }: MachineConfigNodeStatus): MachineConfigNodeStatus {
  return status;
}

/** @returns the status without the conditions of cordon and drain, for a node that Shale has put back in service. */
export function withoutCordon(
  status: MachineConfigNodeStatus | undefined,
): MachineConfigNodeStatus | undefined {
  if (status?.conditions?.some(({ type }) => OURS.includes(type)) !== true) return status;
  return {
    ...withoutDrain(status),
    conditions: status.conditions.filter(({ type }) => !OURS.includes(type)),
  };
}

/** Pods that end in time change with every pass: only those that don't are worth a write. */
function drainedCondition(
  drain: CordonReport['drain'],
  isStuck: boolean,
): Omit<Condition, 'lastTransitionTime'> | undefined {
  const type = 'Drained';
  switch (drain.kind) {
    case 'unneeded':
      return undefined;
    case 'drained':
      return {
        type,
        status: 'True',
        reason: 'Drained',
        message: 'No pod is left that an update would disturb',
      };
    case 'draining': {
      const { blocked } = drain;
      const reported = { ...drain, terminating: isStuck ? drain.terminating : [] };
      const reason = blocked.length > 0 || isStuck ? 'DrainBlocked' : 'Draining';
      return { type, status: 'Unknown', reason, message: `The node ${formatDrain(reported)}` };
    }
  }
}
