import { describe, expect, test } from 'vitest';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import { UNREPORTED_STATUS } from '../../api/object.ts';
import {
  aConfig,
  aDrivenPool,
  aMachine,
  aNodeAt,
  aWorkload,
  handedOverTo,
  MACHINE,
  NODE,
  OWNER,
  SETTINGS,
  someParts,
  targetOf,
  type World,
} from '../../test/fixtures/capi/observed-machine.ts';
import { condition } from '../../test/fixtures/objects.ts';
import type { Machine } from '../contract/cluster-api-kinds.ts';
import { withoutConfig } from './first-config.ts';
import { type ClusterObservation, decideUpkeep } from './follow-owner.ts';

const objects = [aDrivenPool(), aConfig('00-admin', '/etc/admin.conf', 'a')];
const TARGET = targetOf(objects);
const OTHERS = { ...OWNER, name: 'others' };

/** Cluster API hands none of them over. */
const created = aMachine({ metadata: MACHINE });
const fresh = aNodeAt(TARGET, '');
const handed = aNodeAt(TARGET, '', { annotated: handedOverTo() });
const granted = (node: MachineConfigNode): MachineConfigNode => ({
  ...node,
  spec: { ...node.spec, grant: { level: 'Disrupt', config: TARGET, leaseHolder: 'shale-operator' } },
});
const failedAt = aNodeAt(TARGET, '', {
  annotated: handedOverTo(),
  status: {
    conditions: [condition('NodeDegraded', 'True')],
    lastUpdate: {
      config: TARGET,
      startedAt: '2026-01-01T00:00:00Z',
      finishedAt: '2026-01-01T00:00:01Z',
      result: 'RolledBack',
    },
  } as never,
});

interface Case {
  readonly machine?: Machine;
  readonly owner?: typeof OWNER;
  readonly node?: MachineConfigNode;
  readonly world?: Partial<World>;
  readonly more?: Partial<ClusterObservation>;
  readonly isHeld?: boolean;
}

function upkeepOf({ machine = created, owner = OWNER, node = fresh, world, more, isHeld = false }: Case) {
  const workload = aWorkload({ objects, machineConfigNode: node, ...world });
  const machines = [machine];
  const observed: ClusterObservation = {
    isPaused: false,
    settings: SETTINGS,
    owners: [{ owner: OWNER, isPaused: false, current: someParts({}) }],
    machines,
    unconfigured: withoutConfig(machines, workload).map((each) => ({ machine: each, owner })),
    workload,
    ...more,
  };
  return decideUpkeep(observed, () => isHeld);
}

const tainted = {
  providerID: 'dev:////workers-1',
  taints: [{ key: 'shale.dev/not-configured', effect: 'NoSchedule' as const }],
};

describe('a new machine', () => {
  test('is handed over for its first config, as for an update', () => {
    const { handedOver, takenBack } = upkeepOf({});
    expect(handedOver).toEqual([
      { machine: created, node: fresh, update: { owner: OWNER, machine: MACHINE } },
    ]);
    expect(takenBack).toEqual([]);
  });

  test('is not given to MachineHealthChecks when it is handed over', () => {
    expect(upkeepOf({ isHeld: true }).allowed).toEqual([]);
  });

  const { status: _, ...unreported } = fresh;
  test.each<[string, Case]>([
    ['its node has a config', { node: aNodeAt(TARGET, 'rendered-0') }],
    ['its daemon has not reported', { node: unreported }],
    ['its status is empty', { node: { ...fresh, status: {} } }],
    ['its status is the default', { node: { ...fresh, status: UNREPORTED_STATUS as never } }],
    ['its node has not the target of the pool yet', { node: aNodeAt('rendered-0', '') }],
    ['its node is another machine', { world: { node: { spec: { providerID: 'dev:////other' } } } }],
    ['its node has the startup taint and needs nobody', { world: { node: { spec: tainted } } }],
    ['it has no node', { machine: aMachine({ metadata: MACHINE, status: {} }) }],
    ['it belongs to another owner', { owner: OTHERS }],
    ['Cluster API updates it', { machine: aMachine() }],
    ['it is being deleted', { machine: aMachine({ metadata: { ...MACHINE, deletionTimestamp: 'now' } }) }],
    ['its Cluster is paused', { more: { isPaused: true } }],
    ['its owner is paused', { more: { owners: [{ owner: OWNER, isPaused: true, current: someParts({}) }] } }],
    [
      'it is paused',
      { machine: aMachine({ metadata: { ...MACHINE, annotations: { 'cluster.x-k8s.io/paused': '' } } }) },
    ],
    ['its first config failed', { node: { ...failedAt, metadata: fresh.metadata } }],
    ['it has been handed over', { node: handed }],
  ])('is not handed over where %s', (_, each) => {
    expect(upkeepOf(each).handedOver).toEqual([]);
  });

  test('waits while another machine of its pool is handed over', () => {
    const base = aWorkload({ objects, machineConfigNode: fresh });
    const other = { ...aNodeAt(TARGET, 'rendered-0', { annotated: handedOverTo() }) };
    const workload = {
      ...base,
      machineConfigNodes: [fresh, { ...other, metadata: { ...other.metadata, name: 'node-2' } }],
    };
    const unconfigured = [{ machine: created, owner: OWNER }];
    expect(upkeepOf({ more: { workload, unconfigured } }).handedOver).toEqual([]);
  });

  test('goes before the next one of its pool', () => {
    const second = aMachine({
      metadata: { ...MACHINE, name: 'workers-2' },
      status: { nodeRef: { name: 'node-2' } },
    });
    const base = aWorkload({ objects, machineConfigNode: fresh });
    const node = { ...fresh, metadata: { ...fresh.metadata, name: 'node-2' } };
    const workload = { ...base, machineConfigNodes: [node, fresh] };
    const unconfigured = [second, created].map((machine) => ({ machine, owner: OWNER }));
    const names = upkeepOf({ more: { workload, unconfigured } }).handedOver.map(
      (each) => each.node.metadata.name,
    );
    expect(names).toEqual([NODE]);
  });
});

test('a daemon that has staged the first config reports no config that the node runs', () => {
  const node = { ...fresh, status: { conditions: [condition('UpdatePrepared')] } };
  expect(upkeepOf({ node }).handedOver).toHaveLength(1);
});

describe('a machine that was handed over for its first config', () => {
  test.each<[string, Case]>([
    ['until it has one', { node: handed }],
    ['while it applies it', { node: granted(handed) }],
    ['until its grant is gone', { node: granted(aNodeAt(TARGET, TARGET, { annotated: handedOverTo() })) }],
  ])('keeps it %s', (_, each) => {
    expect(upkeepOf({ ...each, isHeld: true })).toMatchObject({ takenBack: [], allowed: [], handedOver: [] });
  });

  const paused = aMachine({ metadata: { ...MACHINE, annotations: { 'cluster.x-k8s.io/paused': '' } } });
  test.each<[string, Case]>([
    ['has it', { node: aNodeAt(TARGET, TARGET, { annotated: handedOverTo() }) }],
    ['failed at it', { node: failedAt }],
    ['is paused', { node: handed, machine: paused }],
    ['is of a paused Cluster', { node: handed, more: { isPaused: true } }],
    [
      'is deleted',
      { node: handed, machine: aMachine({ metadata: { ...MACHINE, deletionTimestamp: 'now' } }) },
    ],
  ])('is taken back once it %s', (_, each) => {
    const upkeep = upkeepOf({ ...each, isHeld: true });
    expect(upkeep.takenBack).toEqual([each.node]);
    expect(upkeep.allowed).toHaveLength(1);
    expect(upkeep.handedOver).toEqual([]);
  });
});
