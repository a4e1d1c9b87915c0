import { describe, expect, test } from 'vitest';
import { annotations } from '../../api/names.ts';
import { condition, machineConfigNode, node, pool } from '../../test/fixtures/observed-cluster.ts';
import { decideStart } from './decide-start.ts';
import { type MaintenanceObservation, maintenanceHolder } from './node-access.ts';

const NOW = Date.parse('2026-11-20T10:05:00Z');
const HOLDER = maintenanceHolder('me');
const updated = {
  configVersion: { current: 'rendered-worker-1', desired: 'rendered-worker-1' },
  conditions: [condition('Updated', 'True')],
};
const staged = { conditions: [condition('UpdatePrepared', 'True')] };
const rollingOut = pool([condition('Updating', 'True')]);
const grant = { level: 'Disrupt' as const, config: 'rendered-worker-1', leaseHolder: 'shale-operator' };

const lease = (holderIdentity: string, renewTime = '2026-11-20T10:00:00.000000Z') => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: 'node-a' },
  spec: { holderIdentity, renewTime, leaseDurationSeconds: 600 },
});

function decide(more: Partial<MaintenanceObservation>) {
  return decideStart(
    {
      node: node('a'),
      lease: undefined,
      machineConfigNode: machineConfigNode('a', updated),
      pool: pool([condition('Updating', 'False')]),
      ...more,
    },
    HOLDER,
    NOW,
  );
}

describe('starting a maintenance', () => {
  test.each<[string, Partial<MaintenanceObservation>]>([
    ['the node is idle', {}],
    ['no pool selects the node', { machineConfigNode: undefined, pool: undefined }],
    ['it was started before', { lease: lease(HOLDER), pool: rollingOut }],
    ["another holder's lease has expired", { lease: lease('ops', '2026-11-20T09:00:00.000000Z') }],
    ['its pool updates other nodes', { pool: rollingOut }],
    [
      'they switched the machine off before',
      { node: node('a', { [annotations.poweredOff]: '{"by":"me"}' }), lease: lease('shale-powered-off') },
    ],
  ])('is allowed when %s', (_, more) => {
    expect(decide(more)).toEqual({ kind: 'go' });
  });

  test.each<[string, Partial<MaintenanceObservation>, string]>([
    [
      'the node is still to be updated',
      { pool: rollingOut, machineConfigNode: machineConfigNode('a', staged) },
      'a rollout of pool worker is in progress',
    ],
    [
      'another person has flagged it',
      { node: node('a', { [annotations.plannedMaintenance]: '{"by":"ops","reason":"new disk"}' }) },
      'it is flagged for maintenance by ops: new disk',
    ],
    [
      'another person has switched the machine off',
      {
        node: node('a', { [annotations.poweredOff]: '{"by":"ops","reason":"fan"}' }),
        lease: lease('shale-powered-off'),
      },
      'it was switched off on request by ops: fan',
    ],
  ])('needs a confirmation when %s', (_, more, why) => {
    expect(decide(more)).toEqual({ kind: 'confirm', why: expect.stringContaining(why) });
  });

  test.each<[string, Partial<MaintenanceObservation>, string]>([
    [
      'the operator is updating it',
      { lease: lease('shale-operator') },
      'it is being updated to rendered-worker-1',
    ],
    [
      'another maintenance is in progress',
      { lease: lease(maintenanceHolder('ops')) },
      'it is in maintenance: its lease is held by shale-maintenance/ops until 2026-11-20T10:10:00.000Z',
    ],
    [
      'its daemon has a grant that outlived the lease',
      { machineConfigNode: machineConfigNode('a', staged, { grant }) },
      'it has permission to update to rendered-worker-1',
    ],
  ])('is blocked when %s', (_, more, why) => {
    expect(decide(more)).toEqual({ kind: 'blocked', why });
  });
});
