import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatClusterApiUpdate } from '../../api/annotation-requests.ts';
import type { MachineOwner } from '../../api/machine-owner.ts';
import { annotations } from '../../api/names.ts';
import { STARTUP_TAINTS } from '../../api/startup-taint.ts';
import {
  aMachineConfigNode,
  aNode,
  condition,
  REBOOT,
  RESTART,
  someSettings,
} from '../../test/fixtures/objects.ts';
import { decide, NEXT, observed } from '../../test/fixtures/pool-decided.ts';
import { inputs } from '../../test/fixtures/pool-status-inputs.ts';
import { formatDriven } from '../pools/driven-nodes.ts';
import { handoverOf } from '../pools/handover.ts';
import { startupOf } from '../pools/new-node.ts';
import type { ObservedNode } from '../pools/pool-observation.ts';
import { poolStatus } from '../pools/pool-status.ts';
import type { PoolTarget } from '../pools/pool-target.ts';
import { drivenBy } from './driven-by.ts';

const owner: MachineOwner = { kind: 'MachineDeployment', namespace: 'default', name: 'workers' };
const byOwner = (by: MachineOwner) =>
  formatClusterApiUpdate({
    owner: by,
    machine: { namespace: 'default', name: 'workers-7xq2' },
    at: '2026-06-01T12:00:00Z',
  });

/** A node that has staged the pool's target. */
function staged(name: string, more: Partial<Fake> = {}): ObservedNode {
  const { handover, actions = REBOOT, tainted, inService, roles = {}, cordoned, grant } = { ...more };
  const marks = {
    ...(inService ? { [annotations.inService]: 'true' } : {}),
    ...(cordoned ? { [annotations.cordonedByShale]: 'true' } : {}),
  };
  const taints = tainted ? [{ key: STARTUP_TAINTS[0], effect: 'NoSchedule' as const }] : [];
  const target = { config: 'rendered-worker-2' };
  const object = aMachineConfigNode(
    name,
    {
      configVersion: { desired: target.config },
      ...(grant === undefined ? {} : { grant: { ...target, level: grant, leaseHolder: 'shale-operator' } }),
    },
    { plan: { ...target, staged: true, actions: [...actions], causes: [], source: 'x' } },
  );
  const set = handover === undefined ? {} : { [annotations.clusterApiUpdate]: handover };
  return observed(name, {
    node: aNode(name, {
      metadata: { name, annotations: marks, labels: roles },
      spec: { taints, ...(cordoned ? { unschedulable: true } : {}) },
      status: { conditions: [condition('Ready')] },
    }),
    machineConfigNode: { ...object, metadata: { ...object.metadata, annotations: set } },
    ...(cordoned || grant !== undefined ? { lease: { by: 'us', since: 0 } as const } : {}),
  });
}

interface Fake {
  readonly handover: string;
  readonly actions: typeof REBOOT | typeof RESTART;
  readonly tainted: true;
  readonly inService: true;
  readonly roles: Readonly<Record<string, string>>;
  readonly cordoned: true;
  readonly grant: 'Live' | 'Disrupt';
}

const driven = (nodes: readonly ObservedNode[], settings: object = {}) =>
  decide(nodes, {}, {}, { drivenBy: owner, ...settings });
const takes = (nodes: readonly ObservedNode[], settings: object = {}) =>
  [...driven(nodes, settings).steps].flatMap(([name, { kind }]) => (kind === 'take' ? [name] : []));

const CONTROL_PLANE = { 'node-role.kubernetes.io/control-plane': '' };

it.each<[string, Partial<Fake>, string | undefined]>([
  ['nobody handed over', {}, 'Cluster API (MachineDeployment default/workers) has not handed the node over'],
  ["the pool's owner handed over", { handover: byOwner(owner) }, undefined],
  [
    'another owner handed over',
    { handover: byOwner({ ...owner, name: 'other' }) },
    'the node was handed over by MachineDeployment default/other, but the pool is driven by MachineDeployment default/workers',
  ],
  [
    'an owner of another kind handed over',
    { handover: byOwner({ ...owner, kind: 'KubeadmControlPlane' }) },
    'the node was handed over by KubeadmControlPlane default/workers, but the pool is driven by MachineDeployment default/workers',
  ],
  [
    "has a text that can't be read",
    { handover: 'true' },
    "annotation shale.dev/cluster-api-update of its MachineConfigNode can't be read: expected object",
  ],
  ['is new', { tainted: true }, undefined],
  ['is new, and of the control plane', { tainted: true, roles: CONTROL_PLANE }, undefined],
  [
    'got the startup taint in service',
    { tainted: true, inService: true },
    'Cluster API (MachineDeployment default/workers) has not handed the node over',
  ],
])('in a pool that Cluster API drives, a node that %s', (_, fake, message) => {
  const { node, machineConfigNode } = staged('a', fake);
  const claimed = {
    claims: { handover: machineConfigNode && handoverOf(machineConfigNode) },
    availability: { startup: startupOf(node) },
  };
  const hold = drivenBy.hold({ settings: { drivenBy: owner } }, claimed);
  expect(hold?.message).toBe(message);
  if (hold !== undefined) expect(hold.reason).toBe('AwaitingClusterApi');
  expect(drivenBy.hold({ settings: { drivenBy: undefined } }, claimed)).toBeUndefined();
});

describe('Cluster API sets the pace', () => {
  const handed = (name: string, more: Partial<Fake> = {}) =>
    staged(name, { handover: byOwner(owner), ...more });

  it('nodes that it handed over start together, whatever maxUnavailable is', () => {
    expect(takes([handed('a'), handed('b'), staged('c'), handed('d')])).toEqual(['a', 'b', 'd']);
  });

  it('live updates have no canary', () => {
    const live = { actions: RESTART };
    expect(takes([handed('a', live), handed('b', live), staged('c', live)])).toEqual(['a', 'b']);
  });

  it('waves hold none of them', () => {
    const waves = [{ nodes: { kind: 'count', value: 1 } as const, bake: 3_600_000 }];
    expect(takes([handed('a'), handed('b')], { waves })).toEqual(['a', 'b']);
  });

  it('control-plane nodes go one at a time', () => {
    const roles = CONTROL_PLANE;
    expect(takes([handed('a', { roles }), handed('b', { roles })])).toEqual(['a']);
  });

  it('failure domains limit them', () => {
    const rack = { roles: { rack: '1' } };
    const failureDomains = { topologyKey: 'rack', maxUnavailable: 1 };
    expect(takes([handed('a', rack), handed('b', rack)], { failureDomains })).toEqual(['a']);
  });

  it('a rollout that failed nodes stopped starts none of them', () => {
    const broken = handed('x');
    const { machineConfigNode = aMachineConfigNode('x') } = broken;
    const failed = {
      ...broken,
      machineConfigNode: {
        ...machineConfigNode,
        status: { ...machineConfigNode.status, conditions: [condition('NodeDegraded', 'True', 'no space')] },
      },
    };
    expect(driven([failed, handed('a')]).halted).toContain('x');
    expect(takes([failed, handed('a')])).toEqual([]);
  });
});

describe('a node that Cluster API takes back', () => {
  it('is put back before its grant', () => {
    expect(driven([staged('a', { cordoned: true })]).steps.get('a')).toEqual({
      kind: 'back-out',
      why: 'Cluster API (MachineDeployment default/workers) has not handed the node over',
    });
  });

  it.each([
    ['Disrupt', REBOOT],
    ['Live', RESTART],
  ] as const)('ends its update after a grant of level %s', (grant, actions) => {
    const step = driven([staged('a', { grant, actions, cordoned: true })]).steps.get('a');
    expect(step?.kind).toBe('keep-lease');
  });

  it('waits after a live update that failed, before it is rebooted for it', () => {
    expect(driven([staged('a', { grant: 'Live', cordoned: true })]).steps.get('a')?.kind).toBe('back-out');
  });
});

it('no node without its mark starts, whatever else is true of it', () => {
  const anyNode = fc.record({
    handover: fc.constantFrom(undefined, 'x', byOwner({ ...owner, name: 'other' }), byOwner(owner)),
    actions: fc.constantFrom(REBOOT, RESTART),
    tainted: fc.boolean(),
    inService: fc.boolean(),
    roles: fc.constantFrom({}, CONTROL_PLANE),
    cordoned: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(anyNode, { maxLength: 6 }), fc.boolean(), (fakes, paused) => {
      const nodes = fakes.map((fake, index) => staged(`n${index}`, definedOf(fake)));
      const { steps } = decide(nodes, { paused }, {}, { drivenBy: owner });
      for (const [name, { kind }] of steps) {
        const fake = fakes[Number(name.slice(1))];
        const isNamed = fake?.handover === byOwner(owner);
        const isNew = fake?.tainted === true && !fake.inService;
        if (kind === 'take' || kind === 'drain') expect(isNamed || isNew).toBe(true);
      }
    }),
  );
});

/** Only what is set. */
function definedOf(fake: object): Partial<Fake> {
  return Object.fromEntries(
    Object.entries(fake).filter(([, value]) => value !== undefined && value !== false),
  );
}

it('a pool says who drives it, and which nodes were handed over', () => {
  const states = (nodes: readonly ObservedNode[]) => driven(nodes).states;
  expect(formatDriven(owner, states([staged('a')]))).toBe(
    'Cluster API (MachineDeployment default/workers) decides when nodes are updated; no node is handed over',
  );
  const handed = Array.from({ length: 12 }, (_, index) =>
    staged(`n${10 + index}`, { handover: byOwner(owner) }),
  );
  expect(formatDriven(owner, states([...handed, staged('a')]))).toMatch(
    /; handed over: n10, n11, .*, n19 and 2 more$/,
  );
});

describe('the condition Updating of a pool that Cluster API drives', () => {
  const settings = someSettings({ drivenBy: owner });
  const updating = (nodes: readonly ObservedNode[], target: PoolTarget = NEXT) => {
    const decision = decide(nodes, {}, {}, { drivenBy: owner }, { target });
    const { conditions } = poolStatus(inputs({ settings, target, machineCount: nodes.length, decision }), 0);
    const { reason, message } = conditions?.find(({ type }) => type === 'Updating') ?? {};
    return `${reason} ${message}`;
  };
  const waits = 'Cluster API (MachineDeployment default/workers) has not handed the node over';

  it('says who decides, once every node that is not updated waits', () => {
    expect(updating([staged('a'), staged('b')])).toBe(
      `AwaitingClusterApi 0 of 2 nodes run rendered-worker-2; Cluster API (MachineDeployment default/workers) decides when nodes are updated; no node is handed over; a: ${waits}; b: ${waits}`,
    );
  });

  it('says which nodes were handed over', () => {
    expect(updating([staged('a'), staged('b', { handover: byOwner(owner) })])).toBe(
      `NodesUpdating 0 of 2 nodes run rendered-worker-2; Cluster API (MachineDeployment default/workers) decides when nodes are updated; handed over: b; a: ${waits}`,
    );
  });

  it('is the same for a rollback', () => {
    const held: PoolTarget = {
      kind: 'rolled-back',
      target: { config: 'rendered-worker-2' },
      ownTarget: { kind: 'standard', target: { config: 'rendered-worker-3' } },
      why: 'rolled back by ann',
      sameContent: new Set(),
    };
    expect(updating([staged('a')], held)).toMatch(/^AwaitingClusterApi /);
    expect(driven([staged('a')]).steps.size).toBe(0);
  });
});
