import pino from 'pino';
import { beforeEach, describe, expect, it } from 'vitest';
import { type Lease, Leases, type Node, Nodes, type Pod, Pods } from '../../api/kubernetes.ts';
import { type Grant, type MachineConfigNode, MachineConfigNodes } from '../../api/machine-config-node.ts';
import { annotations, DEFAULT_LEASE_NAMESPACE } from '../../api/names.ts';
import { ApiError } from '../../cluster/api-client.ts';
import { noTracer, type Span } from '../../cluster/tracing/span.ts';
import { MemoryCluster } from '../../test/fixtures/fleet/memory-cluster.ts';
import { type SteppedOperator, steppedOperator } from '../../test/fixtures/fleet/stepped-operator.ts';
import { aMachineConfigNode, aNode, condition, image, REBOOT, RESTART } from '../../test/fixtures/objects.ts';
import { CLUSTER_API_MACHINES } from '../node-claims.ts';
import { leaseNameOf } from '../node-leases.ts';
import { defaultRolloutOptions as options } from '../options.ts';
import { type Hooks, noHooks } from '../pools/hooks.ts';
import type { NodeStep } from '../pools/node-step.ts';
import { MachineRemediation } from './machine-remediation.ts';
import { NodeWork, type StepReport } from './node-work.ts';

const signal = new AbortController().signal;
const CONFIG = 'rendered-worker-2';
const TAKEN = Date.parse('2026-06-01T00:00:00Z');
const US = options.leases.holder;

let cluster: MemoryCluster;
let operator: SteppedOperator;
let work: NodeWork;
let now: number;
let isDeleting: boolean;
/** Pods whose eviction a budget refuses, and nodes' names in the order of writes. */
let refused: Set<string>;
let drains: number[];
let spans: Span[];

beforeEach(() => {
  cluster = new MemoryCluster();
  now = TAKEN;
  isDeleting = false;
  refused = new Set();
  drains = [];
  spans = [];
  operator = steppedOperator(cluster, () => now);
  work = newWork();
});

function newWork(): NodeWork {
  const client = cluster.client();
  return new NodeWork({
    client: {
      ...client,
      evict: async ({ name, namespace }) => {
        if (refused.has(name)) throw new ApiError(429, name, { reason: 'TooManyRequests' });
        cluster.remove(Pods, name);
        expect(namespace).toBe('default');
      },
    },
    leases: operator.leases,
    machines: { isDeleting: async () => isDeleting },
    remediation: new MachineRemediation({ client, log: pino({ level: 'silent' }) }),
    events: {
      normal: (object, reason, message) =>
        void events().push(['Normal', object.metadata.name, reason, message]),
      warning: (object, reason, message) =>
        void events().push(['Warning', object.metadata.name, reason, message]),
    },
    log: pino({ level: 'silent' }),
    options,
    metrics: { observeDrain: (seconds: number) => void drains.push(seconds) },
    tracer: { ...noTracer, record: (span: Span) => void spans.push(span) },
    caches: operator.caches,
    now: () => now,
  });
}

const events = () => operator.events as unknown as (typeof operator.events)[number][];

interface Setup {
  readonly node?: Partial<Pick<Node, 'spec' | 'status'>> & {
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec?: Partial<MachineConfigNode['spec']>;
  readonly actions?: typeof REBOOT;
  readonly lease?: string;
  readonly conditions?: NonNullable<MachineConfigNode['status']>['conditions'];
}

function put({ node = {}, spec = {}, actions = REBOOT, lease, conditions = [] }: Setup = {}): void {
  const { annotations: own, ...rest } = node;
  cluster.put(
    Nodes,
    aNode('a', { ...rest, metadata: { name: 'a', uid: 'uid-a', ...(own && { annotations: own }) } }),
  );
  cluster.put(
    MachineConfigNodes,
    aMachineConfigNode(
      'a',
      { configVersion: { desired: CONFIG }, ...spec },
      {
        configVersion: { current: 'rendered-worker-1', desired: CONFIG },
        plan: { config: CONFIG, staged: true, actions: [...actions], causes: [], source: 'label' },
        conditions,
      },
    ),
  );
  if (lease !== undefined) putLease(lease);
  operator.catchUp();
}

function putLease(holderIdentity: string): void {
  const time = new Date(TAKEN).toISOString();
  const spec = { holderIdentity, leaseDurationSeconds: 100_000, acquireTime: time, renewTime: time };
  const metadata = { name: leaseNameOf('a'), namespace: DEFAULT_LEASE_NAMESPACE, uid: 'uid-lease' };
  const object: Lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec };
  cluster.put(Leases, object);
}

function putPod(name: string): void {
  const ownerReferences = [
    { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'o', uid: 'u', controller: true },
  ];
  const metadata = { name, namespace: 'default', ownerReferences };
  const pod: Pod = { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers: [] } };
  cluster.put(Pods, pod);
}

async function take(step: NodeStep, onlyNode = false, hooks: Hooks = noHooks): Promise<StepReport> {
  const node = operator.caches.nodes.get('a');
  const machineConfigNode = operator.caches.machineConfigNodes.get('a');
  if (node === undefined || machineConfigNode === undefined) throw new Error('nothing was put');
  return await work.carryOut(step, { node, machineConfigNode, onlyNode, hooks }, signal);
}

const node = () => cluster.get(Nodes, 'a');
const mark = () => node()?.metadata.annotations?.[annotations.cordonedByShale];
const isCordoned = () => node()?.spec?.unschedulable === true;
/** What is on the node for those who delete nodes. */
const AUTOSCALER = 'cluster-autoscaler.kubernetes.io/scale-down-disabled';
const KARPENTER = 'karpenter.sh/do-not-disrupt';
const BLOCKED = annotations.disruptionBlocked;
const forDeleters = () =>
  [AUTOSCALER, KARPENTER, BLOCKED].map((name) => node()?.metadata.annotations?.[name]);
const OURS = ['true', 'true', `${AUTOSCALER},${KARPENTER}`];
const NONE = [undefined, undefined, undefined];
const grant = () => cluster.get(MachineConfigNodes, 'a')?.spec.grant;
const holder = () => cluster.get(Leases, leaseNameOf('a'))?.spec?.holderIdentity ?? '';
const conditions = () =>
  Object.fromEntries(
    (cluster.get(MachineConfigNodes, 'a')?.status?.conditions ?? []).map(({ type, reason }) => [
      type,
      reason,
    ]),
  );
const granted = (level: Grant['level']) => ({ level, config: CONFIG, leaseHolder: US });
/** A node in the middle of a drain: ours, and cordoned by us. */
const CORDONED = {
  lease: US,
  node: { spec: { unschedulable: true }, annotations: { [annotations.cordonedByShale]: 'true' } },
} as const;

describe('taking a node', () => {
  it('to apply an update live takes its lease and grants; nothing is cordoned', async () => {
    put({ actions: RESTART });
    expect(await take({ kind: 'take', level: 'Live' })).toEqual({});
    expect(grant()).toEqual(granted('Live'));
    expect([holder(), isCordoned(), mark()]).toEqual([US, false, undefined]);
  });

  it('to reboot it takes its lease, cordons, drains and grants', async () => {
    put();
    putPod('web');
    expect(await take({ kind: 'take', level: 'Disrupt' })).toMatchObject({
      note: 'is being drained; 1 pod still terminating: default/web',
    });
    expect([holder(), isCordoned(), mark(), grant()]).toEqual([US, true, 'true', undefined]);
    // In the same write, MCO's annotations name what the node goes to from now on.
    expect(node()?.metadata.annotations).toMatchObject({
      [annotations.desiredConfig]: CONFIG,
      [annotations.state]: 'Working',
    });
    expect(conditions()).toEqual({ Cordoned: 'Updating', Drained: 'Draining' });
    expect(operator.events).toEqual([
      ['Normal', 'a', 'Cordon', `Cordoned the node to update it to ${CONFIG}`],
    ]);
    now += 20_000;
    operator.catchUp();
    expect(await take({ kind: 'drain' })).toEqual({});
    expect(grant()).toEqual(granted('Disrupt'));
    expect(conditions()).toEqual({ Cordoned: 'Updating', Drained: 'Drained' });
    expect(drains).toEqual([20]);
    expect(spans).toMatchObject([{ name: 'drain', startedAt: TAKEN, endedAt: TAKEN + 20_000 }]);
  });

  it('grants an image, and no image in standard mode', async () => {
    put({ actions: RESTART, spec: { configImage: { desiredImage: image('1') } } });
    await take({ kind: 'take', level: 'Live' });
    expect(grant()).toEqual({ ...granted('Live'), image: image('1') });
    const old = { ...granted('Live'), image: image('1') };
    put({ actions: RESTART, spec: { grant: old } });
    await take({ kind: 'take', level: 'Live' });
    expect(grant()).toEqual(granted('Live'));
  });

  it('whose Machine is being deleted takes nothing, and is looked at again at once', async () => {
    put();
    isDeleting = true;
    const note = 'skipped: its Machine is being deleted';
    expect(await take({ kind: 'take', level: 'Disrupt' })).toEqual({ note, lookAgainAfter: 0 });
    expect([holder(), isCordoned(), grant()]).toEqual(['', false, undefined]);
  });

  it.each(['Live', 'Disrupt'] as const)(
    'that another holds changes nothing on it and reports the holder (%s)',
    async (level) => {
      put({ lease: 'ops' });
      const note = 'skipped: its lease is held by ops';
      expect(await take({ kind: 'take', level })).toEqual({ note });
      expect([holder(), isCordoned(), grant()]).toEqual(['ops', false, undefined]);
    },
  );

  it('remembers that it was cordoned before, so that it stays so afterwards', async () => {
    put({ node: { spec: { unschedulable: true } } });
    await take({ kind: 'take', level: 'Disrupt' });
    expect([isCordoned(), mark()]).toEqual([true, 'false']);
    operator.catchUp();
    await take({ kind: 'finish' });
    expect([isCordoned(), mark(), holder()]).toEqual([true, undefined, '']);
    expect(operator.events.map(([, , reason]) => reason)).toEqual(['Cordon']);
  });

  it('that it has cordoned already writes no second cordon; one that somebody lifted is cordoned again', async () => {
    put(CORDONED);
    await take({ kind: 'take', level: 'Disrupt' });
    expect(operator.events).toEqual([]);
    put({ ...CORDONED, node: { ...CORDONED.node, spec: {} } });
    await take({ kind: 'take', level: 'Disrupt' });
    expect([isCordoned(), mark()]).toEqual([true, 'true']);
    expect(operator.events).toHaveLength(1);
  });
});

describe('draining', () => {
  it('stops where another has taken the lease over', async () => {
    put({ ...CORDONED, lease: 'ops' });
    putPod('web');
    expect(await take({ kind: 'drain' })).toEqual({ note: 'skipped: its lease is held by ops' });
    expect(cluster.list(Pods)).toHaveLength(1);
    expect(grant()).toBeUndefined();
  });

  it.each([
    ['the only node of a cluster is', REBOOT, true],
    ['a node whose plan does not ask for it is', RESTART, false],
  ])('%s not drained', async (_what, actions, onlyNode) => {
    put({ ...CORDONED, actions });
    putPod('web');
    expect(await take({ kind: 'drain' }, onlyNode)).toEqual({});
    expect(cluster.list(Pods)).toHaveLength(1);
    expect(grant()).toEqual(granted('Disrupt'));
    expect(conditions()).toEqual({ Cordoned: 'Updating' });
    expect([drains, spans]).toEqual([[], []]);
  });

  it.each(['true', 'false'])(
    'cordons again what somebody has uncordoned meanwhile (cordoned by Shale: %s)',
    async (before) => {
      const cordonedByShale = { [annotations.cordonedByShale]: before };
      put({ node: { annotations: cordonedByShale, spec: {} }, lease: US });
      putPod('web');
      refused.add('web');
      await take({ kind: 'drain' });
      expect([isCordoned(), mark()]).toEqual([true, before]);
      expect(operator.events.map(([, , reason]) => reason)).toEqual(['Cordon']);
      operator.catchUp();
      const { writes } = cluster;
      await take({ kind: 'drain' });
      expect(cluster.writes).toBe(writes);
    },
  );

  it('that takes too long is reported once for each reason, and again once the node was given back', async () => {
    put(CORDONED);
    putPod('web');
    refused.add('web');
    const limit = options.drain.reportAfterSeconds * 1000;
    now = TAKEN + limit;
    expect(await take({ kind: 'drain' })).toMatchObject({ drainIsStuck: false, lookAgainAfter: limit / 10 });
    expect(operator.events).toEqual([]);
    now += 1;
    operator.catchUp();
    const note = "is being drained; pod default/web can't be evicted: the API server asks to retry later";
    expect(await take({ kind: 'drain' })).toMatchObject({ note, drainIsStuck: true });
    operator.catchUp();
    await take({ kind: 'drain' });
    expect(operator.events).toEqual([['Warning', 'a', 'DrainBlocked', `Node a ${note}`]]);
    operator.catchUp();
    await take({ kind: 'back-out', why: 'the pool is paused' });
    put(CORDONED);
    now += limit + 1;
    await take({ kind: 'drain' });
    expect(operator.events.filter(([, , reason]) => reason === 'DrainBlocked')).toHaveLength(2);
  });

  it('takes no longer for the hooks that it waited for', async () => {
    const hooks = { before: ['lb'], after: [] };
    const annotations = { ...CORDONED.node.annotations, 'shale.dev/hooks': 'before 2026-06-01T00:00:00Z' };
    put({ ...CORDONED, node: { ...CORDONED.node, annotations } });
    putPod('web');
    now = TAKEN + 24 * 3_600_000;
    await take({ kind: 'drain' }, false, hooks);
    expect(operator.events).toEqual([]);
    now += 5_000;
    operator.catchUp();
    await take({ kind: 'drain' }, false, hooks);
    expect([grant()?.level, drains]).toEqual(['Disrupt', [5]]);
  });

  it('waits for pods that still end on a node that is Ready, and not on one that nobody hears from', async () => {
    const terminating = (name: string) => {
      putPod(name);
      const pod = cluster.get(Pods, name);
      if (pod === undefined) throw new Error('it was put just now');
      const deletionTimestamp = new Date(TAKEN - 1_000).toISOString();
      cluster.put(Pods, { ...pod, metadata: { ...pod.metadata, deletionTimestamp } });
    };
    put(CORDONED);
    terminating('web');
    expect((await take({ kind: 'drain' })).note).toMatch(/still terminating/);
    put({ ...CORDONED, node: { ...CORDONED.node, status: { conditions: [condition('Ready', 'False')] } } });
    expect(await take({ kind: 'drain' })).toEqual({});
    expect(grant()).toEqual(granted('Disrupt'));
  });
});

describe('ending the work on a node', () => {
  const busy = { ...CORDONED, spec: { grant: granted('Disrupt') } };
  const reports = [condition('Cordoned'), condition('Drained'), condition('Updated')];

  it.each([
    ['that is updated', { kind: 'finish' } as const, `it runs ${CONFIG}`],
    [
      'that is not to be updated now',
      { kind: 'back-out', why: 'the pool is paused' } as const,
      'the pool is paused',
    ],
  ])('%s leaves nothing on it and says why', async (_what, step, why) => {
    put({ ...busy, conditions: reports });
    expect(await take(step)).toEqual({});
    expect([grant(), isCordoned(), mark(), holder()]).toEqual([undefined, false, undefined, '']);
    expect(conditions()).toEqual({ Updated: 'Updated' });
    expect(operator.events).toEqual([['Normal', 'a', 'Uncordon', `Uncordoned the node: ${why}`]]);
  });

  const ends = [{ kind: 'finish' }, { kind: 'back-out', why: 'the pool is paused' }] as const;

  it.each(ends)(
    'whose lease was left to others, who are done, lifts its cordon under the lease: $kind',
    async (step) => {
      put({ node: CORDONED.node });
      const whose: string[] = [];
      cluster.onWrite = () => {
        if (!isCordoned()) whose.push(holder());
      };
      expect(await take(step)).toEqual({});
      expect([whose[0], isCordoned(), holder()]).toEqual([US, false, '']);
    },
  );

  it.each(ends)('whose lease somebody else has stays cordoned: $kind', async (step) => {
    put({ node: CORDONED.node, lease: 'nhc' });
    expect(await take(step)).toEqual({ note: 'skipped: its lease is held by nhc' });
    expect([isCordoned(), holder()]).toEqual([true, 'nhc']);
  });

  it('that failed keeps its cordon, so that no pod lands there; somebody else may repair it', async () => {
    put(busy);
    expect(await take({ kind: 'let-go', why: 'the update has been failing for too long' })).toEqual({});
    expect([grant(), isCordoned(), mark(), holder()]).toEqual([undefined, true, 'true', '']);
  });

  it('that another has leased withdraws the grant and touches nothing else', async () => {
    put({ ...busy, lease: 'ops' });
    const why = 'lost its lease to ops';
    expect(await take({ kind: 'suspend', why })).toEqual({ note: why });
    expect([grant(), isCordoned(), mark(), holder()]).toEqual([undefined, true, 'true', 'ops']);
  });

  it('waits under the lease while the daemon works', async () => {
    put(busy);
    const before = cluster.writes;
    expect(await take({ kind: 'keep-lease', why: '' })).toEqual({});
    expect([grant(), holder()]).toEqual([granted('Disrupt'), US]);
    expect(cluster.writes).toBe(before);
    put({ ...busy, lease: 'ops' });
    expect(await take({ kind: 'keep-lease', why: '' })).toEqual({
      note: 'skipped: its lease is held by ops',
    });
  });

  it('writes nothing where there is nothing to do', async () => {
    put();
    const before = cluster.writes;
    expect(await take({ kind: 'none' })).toEqual({});
    expect(await take({ kind: 'finish' })).toEqual({});
    expect(cluster.writes).toBe(before);
  });
});

describe('those who delete nodes', () => {
  const blocked = { [AUTOSCALER]: 'true', [KARPENTER]: 'true', [BLOCKED]: OURS[2] ?? '' };
  const ours = {
    ...CORDONED,
    node: { ...CORDONED.node, annotations: { ...CORDONED.node.annotations, ...blocked } },
  };
  const nodeWrites = () => {
    const written: boolean[] = [];
    cluster.trouble = (_name, { kind }) => {
      if (kind === 'Node') written.push(isCordoned());
      return 'none';
    };
    return written;
  };

  it('are kept from a node in the write that cordons it, and no longer in the one that uncordons it', async () => {
    put();
    const writes = nodeWrites();
    await take({ kind: 'take', level: 'Disrupt' });
    expect([isCordoned(), forDeleters()]).toEqual([true, OURS]);
    operator.catchUp();
    // A process that comes later has only what is on the node.
    work = newWork();
    await take({ kind: 'finish' });
    expect([isCordoned(), forDeleters()]).toEqual([false, NONE]);
    expect(writes).toEqual([false, true]);
  });

  it('are told nothing of an update that drains nothing', async () => {
    put({ actions: RESTART });
    await take({ kind: 'take', level: 'Live' });
    expect(forDeleters()).toEqual(NONE);
  });

  it('keep what an admin has decided, during the work and after it', async () => {
    put({ node: { annotations: { [AUTOSCALER]: 'true', [KARPENTER]: 'false' } } });
    await take({ kind: 'take', level: 'Disrupt' });
    expect(forDeleters()).toEqual(['true', 'false', undefined]);
    operator.catchUp();
    await take({ kind: 'finish' });
    expect(forDeleters()).toEqual(['true', 'false', undefined]);
  });

  it('are kept from a node that an earlier operator has cordoned, without a second event', async () => {
    put(CORDONED);
    putPod('web');
    await take({ kind: 'drain' });
    expect(forDeleters()).toEqual(OURS);
    expect(operator.events).toEqual([]);
  });

  it('may have a node that failed, and not while another attempt is made', async () => {
    put({ ...ours, spec: { grant: granted('Disrupt') } });
    await take({ kind: 'let-go', why: 'the update has been failing for too long' });
    expect([isCordoned(), forDeleters(), holder()]).toEqual([true, NONE, '']);
    operator.catchUp();
    await take({ kind: 'take', level: 'Disrupt' });
    expect([isCordoned(), forDeleters()]).toEqual([true, OURS]);
  });

  it('are no longer kept from a node whose mark of the cordon somebody removed', async () => {
    put({ lease: US, node: { annotations: blocked } });
    await take({ kind: 'back-out', why: 'the pool is paused' });
    expect([forDeleters(), holder()]).toEqual([NONE, '']);
  });
});

it('a patch that was decided on an older Node or MachineConfigNode is a conflict', async () => {
  put();
  cluster.put(Nodes, aNode('a', { spec: { unschedulable: true } }));
  await expect(take({ kind: 'take', level: 'Disrupt' })).rejects.toMatchObject({ reason: 'Conflict' });
  put({ actions: RESTART });
  cluster.put(
    MachineConfigNodes,
    aMachineConfigNode('a', { configVersion: { desired: 'rendered-worker-3' } }),
  );
  await expect(take({ kind: 'take', level: 'Live' })).rejects.toMatchObject({ reason: 'Conflict' });
  expect(grant()).toBeUndefined();
});

it('one step at a time is taken on a node: another one that is asked for meanwhile is left to the next look', async () => {
  put();
  const step = { kind: 'take', level: 'Disrupt' } as const;
  expect(await Promise.all([take(step), take(step)])).toEqual([{}, { lookAgainAfter: 100 }]);
  expect(events().map(([, , reason]) => reason)).toEqual(['Cordon']);
  operator.catchUp();
  // And it can be worked on again, also after a step that failed.
  cluster.trouble = () => 'unavailable';
  await expect(take({ kind: 'finish' })).rejects.toMatchObject({ status: 503 });
  cluster.trouble = () => 'none';
  await take({ kind: 'finish' });
  expect([holder(), isCordoned()]).toEqual(['', false]);
});

describe('MachineHealthChecks of a node with a Machine of Cluster API', () => {
  const [Machines] = CLUSTER_API_MACHINES;
  const ofMachine = {
    'cluster.x-k8s.io/machine': 'm-1',
    'cluster.x-k8s.io/cluster-namespace': 'clusters',
  };
  const exempted = () =>
    cluster.get(Machines, 'm-1')?.metadata.annotations?.['cluster.x-k8s.io/skip-remediation'] !== undefined;

  beforeEach(() => {
    cluster.put(Machines, {
      apiVersion: 'cluster.x-k8s.io/v1beta2',
      kind: 'Machine',
      metadata: { name: 'm-1', namespace: 'clusters' },
      status: { nodeRef: { name: 'a' } },
    });
  });

  const taken = async () => {
    put({ node: { annotations: ofMachine } });
    await take({ kind: 'take', level: 'Disrupt' });
    operator.catchUp();
    expect([exempted(), grant()?.level]).toEqual([true, 'Disrupt']);
  };

  it.each<[string, NodeStep]>([
    ['is updated', { kind: 'finish' }],
    ['is put back', { kind: 'back-out', why: 'the pool is paused' }],
    ['failed', { kind: 'let-go', why: 'the update has been failing for too long' }],
  ])('leave it alone until the node %s', async (_, step) => {
    await taken();
    await take(step);
    expect([exempted(), holder()]).toEqual([false, '']);
  });

  it('go on during a live update', async () => {
    put({ actions: RESTART, node: { annotations: ofMachine } });
    await take({ kind: 'take', level: 'Live' });
    expect([exempted(), grant()?.level]).toEqual([false, 'Live']);
  });

  it('leave it alone where another holder has the lease, until it is given back', async () => {
    await taken();
    await take({ kind: 'suspend', why: 'lost its lease' });
    expect(exempted()).toBe(true);
  });

  it('are tried to be given back until they are: the node serves meanwhile, under its lease', async () => {
    await taken();
    cluster.trouble = (_name, { kind }) => (kind === 'Machine' ? 'unavailable' : 'none');
    await expect(take({ kind: 'finish' })).rejects.toThrow(ApiError);
    expect([exempted(), isCordoned(), grant(), holder()]).toEqual([true, false, undefined, US]);
    cluster.trouble = () => 'none';
    operator.catchUp();
    await take({ kind: 'finish' });
    expect([exempted(), holder()]).toEqual([false, '']);
  });

  it('are given back when the node is deleted and its Machine stays', async () => {
    await taken();
    cluster.remove(Nodes, 'a');
    cluster.remove(MachineConfigNodes, 'a');
    const next = steppedOperator(cluster, () => now);
    next.catchUp();
    await next.departed.reconcile('a', signal);
    expect([exempted(), holder()]).toEqual([false, '']);
  });
});
