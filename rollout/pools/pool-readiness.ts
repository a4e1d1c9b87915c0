import type { PoolConditionType } from '../../api/machine-config-pool.ts';
import type { Condition } from '../../api/object.ts';
import type { Readiness } from '../../cluster/readiness.ts';
import { NODES_IN_SEVERAL_POOLS } from './pool-conditions.ts';

/** What the conditions of a pool don't say. */
export interface PoolProgress {
  /** What the pool selects has changed, and is not rendered yet: the other conditions are about what it was before. */
  readonly renderingDue: boolean;
  /** Something that the operator has to do on the pool or its nodes fails, rendering it perhaps. */
  readonly stepsFail: boolean;
  /**
   * A node failed to reach the target that it has now; otherwise nodes that are degraded are on their way to another.
   */
  readonly nodesFailed: boolean;
}

/**
 * How far a pool is. A pool that is Degraded needs somebody, and so does one that a rollback holds: it doesn't come to
 * what its MachineConfigs ask for. One that is paused or not managed is what somebody asked for.
 *
 * @param conditions of the pool, without Ready, Reconciling and Stalled.
 */
export function poolReadiness(
  conditions: readonly Condition[],
  { renderingDue, stepsFail, nodesFailed }: PoolProgress,
): Readiness {
  if (renderingDue && !stepsFail) {
    const message = 'The operator is about to render what the pool selects now';
    return { kind: 'reconciling', reason: 'RenderingDue', message };
  }
  const condition = (of: PoolConditionType) => conditions.find(({ type }) => type === of);
  const degraded = condition('Degraded');
  const updated = condition('Updated');
  if (degraded?.status === 'True' && isOver(degraded.reason, updated?.status === 'True', nodesFailed))
    return { kind: 'stalled', reason: degraded.reason, message: degraded.message };
  if (updated?.status === 'True') return { kind: 'ready', message: updated.message };
  const { reason = 'NoTarget', message = '' } = condition('Updating') ?? {};
  switch (reason) {
    case 'Paused':
    case 'Unmanaged':
      return { kind: 'suspended', reason, message };
    case 'RolledBack':
      return { kind: 'stalled', reason, message };
    default:
      return { kind: 'reconciling', reason, message };
  }
}

/** @returns whether a pool that is Degraded for this reason comes no further by itself. */
function isOver(reason: string, isUpdated: boolean, nodesFailed: boolean): boolean {
  if (reason === NODES_IN_SEVERAL_POOLS) return isUpdated || nodesFailed;
  return reason !== 'NodesDegraded' || nodesFailed;
}
