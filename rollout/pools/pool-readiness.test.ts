import { describe, expect, it, test } from 'vitest';
import type { Condition } from '../../api/object.ts';
import { setReadiness } from '../../cluster/readiness.ts';
import { kstatus, kubectlWaits } from '../../test/fixtures/kstatus.ts';
import { type PoolProgress, poolReadiness } from './pool-readiness.ts';

const NOW = new Date('2026-06-01T00:00:00Z');
const settled: PoolProgress = { renderingDue: false, stepsFail: false, nodesFailed: false };

/** @param told such as `Updated=True AllNodesUpdated`. */
function conditions(...told: readonly string[]): Condition[] {
  return told.map((text) => {
    const [type = '', status = '', reason = ''] = text.split(/[= ]/);
    const lastTransitionTime = '2026-06-01T00:00:00Z';
    return {
      type,
      status: status as Condition['status'],
      reason,
      message: `${type}: ${reason}`,
      lastTransitionTime,
    };
  });
}
const UPDATED = conditions(
  'Updated=True AllNodesUpdated',
  'Updating=False AllNodesUpdated',
  'Degraded=False AsExpected',
);
const behind = (updating: string, degraded = 'False AsExpected') =>
  conditions('Updated=False NodesOutstanding', `Updating=${updating}`, `Degraded=${degraded}`);
/** A pool that was at generation 1 and Ready. */
const wasReady = setReadiness(UPDATED, poolReadiness(UPDATED, settled), 1, NOW);

interface Moment {
  readonly generation: number;
  readonly observed: number;
  readonly conditions: readonly Condition[];
}
const moment = (
  generation: number,
  observed: number,
  told: readonly Condition[],
  progress: PoolProgress = settled,
): Moment => ({
  generation,
  observed,
  conditions: setReadiness(told, poolReadiness(told, progress), observed, NOW),
});
const objectAt = ({ generation, observed, conditions: told }: Moment) => ({
  metadata: { generation },
  status: { observedGeneration: observed, conditions: told },
});

describe('what tools say at each step of a change', () => {
  it.each<[string, Moment, string, 'waits' | 'goes on']>([
    ['before', { generation: 1, observed: 1, conditions: wasReady }, 'Current', 'goes on'],
    [
      'the spec is applied, and nobody has seen it',
      { generation: 2, observed: 1, conditions: wasReady },
      'InProgress',
      'waits',
    ],
    [
      'a MachineConfig is applied, and seen',
      moment(1, 1, UPDATED, { ...settled, renderingDue: true }),
      'InProgress',
      'waits',
    ],
    [
      'its rendering is the target, and not decided on',
      { generation: 2, observed: 1, conditions: wasReady },
      'InProgress',
      'waits',
    ],
    ['an image is built', moment(2, 2, behind('True Building')), 'InProgress', 'waits'],
    ['nodes are updated', moment(2, 2, behind('True NodesUpdating')), 'InProgress', 'waits'],
    [
      'a maintenance window is awaited',
      moment(2, 2, behind('True AwaitingMaintenanceWindow')),
      'InProgress',
      'waits',
    ],
    ['all nodes run it', moment(2, 2, UPDATED), 'Current', 'goes on'],
  ])('%s', (_step, at, status, wait) => {
    const object = objectAt(at);
    expect([kstatus(object), kubectlWaits(object, 'Ready') ? 'waits' : 'goes on']).toEqual([status, wait]);
  });

  it.each<[string, readonly Condition[], PoolProgress, string]>([
    [
      'MachineConfigs that can’t be rendered',
      [...conditions('Degraded=True Degraded'), ...UPDATED.slice(0, 2)],
      settled,
      'Failed',
    ],
    ['a build that failed', behind('False BuildFailed', 'True Degraded'), settled, 'Failed'],
    ['a rollout that stopped', behind('False RolloutStopped', 'True Degraded'), settled, 'Failed'],
    [
      'a node that failed',
      behind('True NodesUpdating', 'True NodesDegraded'),
      { ...settled, nodesFailed: true },
      'Failed',
    ],
    [
      'a node that failed at the target before',
      behind('True NodesUpdating', 'True NodesDegraded'),
      settled,
      'InProgress',
    ],
    [
      'a fix of any of these',
      behind('False RolloutStopped', 'True Degraded'),
      { renderingDue: true, stepsFail: false, nodesFailed: true },
      'InProgress',
    ],
    ['a rollback that holds the pool', behind('False RolledBack'), settled, 'Failed'],
    ['a pool that is paused', behind('False Paused'), settled, 'InProgress'],
    ['a pool that is not managed', behind('False Unmanaged'), settled, 'InProgress'],
    ['a pool without a target', behind('False NoTarget'), settled, 'InProgress'],
    ['a pool without a status', [], settled, 'InProgress'],
  ])('%s', (_what, told, progress, status) => {
    const object = objectAt(moment(2, 2, told, progress));
    expect(kstatus(object)).toBe(status);
    expect(kubectlWaits(object, 'Ready')).toBe(true);
    expect(kubectlWaits(object, 'Stalled')).toBe(status !== 'Failed');
  });
});

test('a condition says why, and the others of the three only that it is not so', () => {
  const told = behind('True NodesUpdating');
  const three = setReadiness(told, poolReadiness(told, settled), 3, NOW).slice(-3);
  expect(three.map(({ type, status, reason, message }) => [type, status, reason, message])).toEqual([
    ['Ready', 'False', 'NodesUpdating', 'Updating: NodesUpdating'],
    ['Reconciling', 'True', 'NodesUpdating', 'Updating: NodesUpdating'],
    ['Stalled', 'False', 'NodesUpdating', 'Nothing has to be changed by anybody'],
  ]);
  expect(three.map(({ observedGeneration }) => observedGeneration)).toEqual([3, 3, 3]);
});

test('a pool that is paused is neither reconciling nor stalled', () => {
  const told = behind('False Paused');
  const three = setReadiness(told, poolReadiness(told, settled), undefined, NOW).slice(-3);
  expect(three.map(({ status }) => status)).toEqual(['False', 'False', 'False']);
  expect(three[0]).not.toHaveProperty('observedGeneration');
});
