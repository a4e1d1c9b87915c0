import { describe, expect, test } from 'vitest';
import type { Lease, Node } from '../api/kubernetes.ts';
import { annotations } from '../api/names.ts';
import type { SettingFields } from '../api/pool-settings/table.ts';
import { present } from '../api/present.ts';
import { aNode, aPool, aState, heldBy } from '../test/fixtures/objects.ts';
import { nodeHolds, poolHolds } from './holds.ts';
import type { HoldView } from './schemas.ts';

const NOW = Date.parse('2026-11-21T23:00:00Z');

describe('a pool', () => {
  const updating = (
    reason: string,
    status: 'True' | 'False' = 'False',
    type: 'Updating' | 'UpdatesHeld' | 'ChangeTried' = 'Updating',
  ) => ({
    type,
    status,
    reason,
    message: '',
    lastTransitionTime: '2026-11-21T20:00:00Z',
  });
  const window = (schedule: string) => ({ schedule, duration: '4h', timeZone: 'Europe/Berlin' });
  const since = '2026-11-21T20:00:00Z';
  const reason = '0 22 * * 6 (Europe/Berlin), for 4h';

  test.each<
    [
      string,
      SettingFields & { rollback?: string },
      ReturnType<typeof updating> | undefined,
      boolean,
      HoldView[],
    ]
  >([
    ['nothing', {}, undefined, false, []],
    ['a pause', {}, updating('Paused'), true, [{ kind: 'paused', since }]],
    ['a pause that is not reported yet', {}, updating('NodesUpdating', 'True'), true, [{ kind: 'paused' }]],
    [
      'a rollback',
      { rollback: '{"config":"c","by":"ops","reason":"slow","at":"2026-11-21T20:00:00Z"}' },
      undefined,
      false,
      [{ kind: 'rollback', by: 'ops', reason: 'slow', since }],
    ],
    ['a rollback by nobody', { rollback: '{"config":"c"}' }, undefined, false, [{ kind: 'rollback' }]],
    ['failed nodes', {}, updating('RolloutStopped'), false, [{ kind: 'stopped', since }]],
    [
      'a setting that can not be read',
      { rollback: 'soon' },
      updating('NothingBegins'),
      false,
      [{ kind: 'unreadable', since }],
    ],
    [
      'a wait for another pool',
      {},
      updating('AwaitingPools', 'True', 'UpdatesHeld'),
      false,
      [{ kind: 'waiting', reason: '', since }],
    ],
    [
      'a change is tried',
      {},
      updating('AwaitingConfirmation', 'True', 'ChangeTried'),
      false,
      [{ kind: 'tried', since: expect.any(String), reason: expect.any(String) }],
    ],
    ['no change is tried any more', {}, updating('NothingTried', 'False', 'ChangeTried'), false, []],
    ['no such wait any more', {}, updating('NothingHeld', 'False', 'UpdatesHeld'), false, []],
    ['an unmanaged MachineConfiguration', {}, updating('Unmanaged'), false, [{ kind: 'unmanaged', since }]],
    [
      'reboots that are left to others',
      { rebootPolicy: 'AtNextReboot' },
      undefined,
      false,
      [{ kind: 'next-reboot' }],
    ],
    [
      'updates that Cluster API decides',
      { drivenBy: { kind: 'MachineDeployment', namespace: 'default', name: 'workers' } },
      undefined,
      false,
      [{ kind: 'cluster-api', reason: 'MachineDeployment default/workers' }],
    ],
    ['reboots that are not', { rebootPolicy: 'Automatic' }, undefined, false, []],
    [
      'an open window',
      { maintenanceWindows: [window('0 22 * * 6')] },
      undefined,
      false,
      [{ kind: 'window-open', reason, until: '2026-11-22T01:00:00Z' }],
    ],
    [
      'a closed window',
      { maintenanceWindows: [window('0 2 * * 6')] },
      undefined,
      false,
      [{ kind: 'window-closed', reason: reason.replace('22', '2'), until: '2026-11-28T01:00:00Z' }],
    ],
    [
      'windows that can not be read',
      { maintenanceWindows: [window('at night')] },
      undefined,
      false,
      [{ kind: 'window-closed' }],
    ],
  ])('with %s', (_, { rollback, ...shale }, condition, paused, holds) => {
    const pool = aPool('worker', { paused, shale });
    const requests = present({ [annotations.rollback]: rollback });
    const set = {
      ...pool,
      metadata: { ...pool.metadata, annotations: requests },
      ...(condition === undefined ? {} : { status: { conditions: [condition] } }),
    };
    expect(poolHolds(set, NOW)).toEqual(holds);
  });
});

describe('a node', () => {
  const flagged = (name: string, text: string): Node =>
    aNode('a', { metadata: { name: 'a', annotations: { [name]: text } } });
  const flag = '{"reason":"new disk","by":"ops","until":"2026-11-22T08:00:00Z"}';
  const lease: Lease = {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: 'node-a', annotations: { [annotations.leaseReason]: 'nhc: it is not healthy' } },
    spec: {
      holderIdentity: 'nhc',
      acquireTime: '2026-11-21T22:50:00Z',
      renewTime: '2026-11-21T22:59:00Z',
      leaseDurationSeconds: 300,
    },
  };
  const away = { kind: 'switched-off', why: 'switched off on request' } as const;

  test.each<[string, Node, Parameters<typeof aState>[1], Lease | undefined, HoldView[]]>([
    ['nothing', aNode('a'), {}, undefined, []],
    [
      'planned maintenance',
      flagged(annotations.plannedMaintenance, flag),
      { holders: [heldBy('flagged')] },
      undefined,
      [{ kind: 'maintenance', by: 'ops', reason: 'new disk', until: '2026-11-22T08:00:00Z' }],
    ],
    [
      'maintenance that is over',
      flagged(annotations.plannedMaintenance, flag.replace('22T08', '21T08')),
      {},
      undefined,
      [],
    ],
    [
      'a flag that can not be read',
      flagged(annotations.plannedMaintenance, 'yes'),
      { holders: [heldBy('flagged')] },
      undefined,
      [{ kind: 'maintenance' }],
    ],
    [
      'a NodeMaintenance',
      aNode('a'),
      { holders: [{ reason: 'NodeMaintenance', message: 'a NodeMaintenance is active' }] },
      undefined,
      [{ kind: 'maintenance', by: 'NodeMaintenance' }],
    ],
    [
      'a machine that is powered off',
      flagged(annotations.poweredOff, '{"by":"ops","since":"2026-11-21T20:00:00Z"}'),
      { away, holders: [{ reason: 'PoweredOff', message: away.why }] },
      undefined,
      [{ kind: 'powered-off', by: 'ops', since: '2026-11-21T20:00:00Z' }],
    ],
    [
      'another obstacle',
      aNode('a'),
      { holders: [{ reason: 'BeingDeleted', message: 'the node is being deleted' }] },
      undefined,
      [{ kind: 'deleting', reason: 'the node is being deleted' }],
    ],
    [
      "another's lease",
      aNode('a'),
      { lease: { by: 'other', holder: 'nhc' } },
      lease,
      [
        {
          kind: 'lease',
          by: 'nhc',
          reason: 'it is not healthy',
          since: '2026-11-21T22:50:00Z',
          until: '2026-11-21T23:04:00Z',
        },
      ],
    ],
  ])('with %s', (_, node, state, ofNode, holds) => {
    expect(nodeHolds(node, ofNode, aState('a', state).claims)).toEqual(holds);
  });
});
