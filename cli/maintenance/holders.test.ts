import { expect, test } from 'vitest';
import { annotations } from '../../api/names.ts';
import { machineConfigNode, node, pool } from '../../test/fixtures/observed-cluster.ts';
import { readHolders } from './holders.ts';
import { flagText, type MaintenanceObservation, maintenanceHolder } from './node-access.ts';

const NOW = Date.parse('2026-11-20T10:05:00Z');

const lease = (holderIdentity: string, renewTime = '2026-11-20T10:00:00.000000Z') => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: 'node-a' },
  spec: { holderIdentity, renewTime, leaseDurationSeconds: 600 },
});
const flagged = (by: string) => ({ [annotations.plannedMaintenance]: flagText({ reason: 'new disk', by }) });

const holders = (more: Partial<MaintenanceObservation>, inMaintenance = false) =>
  readHolders(
    { node: node('a'), lease: undefined, machineConfigNode: machineConfigNode('a'), pool: pool([]), ...more },
    { by: 'me', inMaintenance, now: NOW },
  );

test.each<[string, Partial<MaintenanceObservation>, string[], string | undefined]>([
  ['nobody', {}, [], undefined],
  ['nobody, while Shale updates it', { lease: lease('shale-operator') }, [], undefined],
  ['nobody any more', { lease: lease('ops', '2026-11-20T09:00:00.000000Z') }, [], undefined],
  ['whoever has its lease', { lease: lease('ops') }, ['its lease is held by ops'], 'ops'],
  ['whoever cordoned it', { node: node('a', {}, true) }, ['cordoned, and not by Shale'], undefined],
  [
    'whoever switched the machine off',
    { node: node('a', { [annotations.poweredOff]: '{"by":"ann"}' }), lease: lease('shale-powered-off') },
    ['switched off on request by ann'],
    'shale-powered-off',
  ],
  [
    'another person, who flagged it',
    { node: node('a', flagged('ann')) },
    ['flagged for maintenance by ann: new disk'],
    undefined,
  ],
  [
    'another person, in a maintenance',
    { node: node('a', flagged('ann'), true), lease: lease(maintenanceHolder('ann')) },
    [
      'its lease is held by shale-maintenance/ann',
      'flagged for maintenance by ann: new disk',
      'cordoned, and not by Shale',
    ],
    'shale-maintenance/ann',
  ],
  [
    'nobody else, in a maintenance of the user',
    { node: node('a', flagged('me'), true), lease: lease(maintenanceHolder('me')) },
    [],
    'shale-maintenance/me',
  ],
])('a node is held by %s', (_, more, reasons, leaseHolder) => {
  expect(holders(more)).toEqual({ reasons, leaseHolder });
});

test('a NodeMaintenance holds a node, in a maintenance of the user too', () => {
  const own = { lease: lease(maintenanceHolder('me')) };
  expect(holders(own, true).reasons).toEqual(['a NodeMaintenance is active']);
  expect(holders(own).reasons).toEqual([]);
});
