import { beforeEach, describe, expect, it } from 'vitest';
import { Leases, Nodes } from '../../api/kubernetes.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import { STARTUP_TAINTS } from '../../api/startup-taint.ts';
import { MemoryCluster } from '../../test/fixtures/fleet/memory-cluster.ts';
import { type SteppedOperator, steppedOperator } from '../../test/fixtures/fleet/stepped-operator.ts';
import { aMachineConfigNode, aNode, REBOOT } from '../../test/fixtures/objects.ts';
import { leaseNameOf } from '../node-leases.ts';
import { defaultRolloutOptions as options } from '../options.ts';
import { type Hooks, noHooks } from '../pools/hooks.ts';
import type { NodeStep } from '../pools/node-step.ts';

const signal = new AbortController().signal;
const CONFIG = 'rendered-worker-2';
const START = Date.parse('2026-06-01T00:00:00Z');
const REPORT = options.reports.hookAfterSeconds * 1000;
const HOOKS: Hooks = { before: ['lb'], after: ['gpu'] };
const BEFORE = 'before.hooks.shale.dev/lb';
const AFTER = 'after.hooks.shale.dev/gpu';
const TAKE: NodeStep = { kind: 'take', level: 'Disrupt' };

let cluster: MemoryCluster;
let operator: SteppedOperator;
let now: number;

beforeEach(() => {
  cluster = new MemoryCluster();
  now = START;
  operator = steppedOperator(cluster, () => now);
  cluster.put(Nodes, aNode('a'));
  const plan = { config: CONFIG, staged: true, actions: [...REBOOT], causes: [], source: 'label' };
  cluster.put(
    MachineConfigNodes,
    aMachineConfigNode('a', { configVersion: { desired: CONFIG } }, { plan, conditions: [] }),
  );
});

async function act(step: NodeStep, hooks: Hooks = HOOKS) {
  operator.catchUp();
  const node = operator.caches.nodes.get('a');
  const machineConfigNode = operator.caches.machineConfigNodes.get('a');
  if (node === undefined || machineConfigNode === undefined) throw new Error('both were put');
  const report = await operator.work.carryOut(
    step,
    { node, machineConfigNode, onlyNode: true, hooks },
    signal,
  );
  operator.catchUp();
  return report;
}

/** What another controller does. */
function clear(name: string): void {
  const node = cluster.get(Nodes, 'a') ?? aNode('a');
  const { [name]: _cleared, ...set } = node.metadata.annotations ?? {};
  cluster.put(Nodes, { ...node, metadata: { ...node.metadata, annotations: set } });
}

const set = () =>
  Object.keys(cluster.get(Nodes, 'a')?.metadata.annotations ?? {}).filter((key) => /hook/.test(key));
const isCordoned = () => cluster.get(Nodes, 'a')?.spec?.unschedulable === true;
const grant = () => cluster.get(MachineConfigNodes, 'a')?.spec.grant?.level;
const overdue = () => operator.events.filter(([, , reason]) => reason === 'HooksOverdue');

describe('hooks before a disruption', () => {
  it('hold a node that is cordoned under the lease until they are cleared', async () => {
    expect(await act(TAKE)).toEqual({
      note: 'has been waiting since 2026-06-01T00:00:00.000Z for 1 hook to be cleared before it is drained or rebooted: lb',
      hooksAreOverdue: false,
      lookAgainAfter: REPORT,
    });
    expect([isCordoned(), grant(), set()]).toEqual([true, undefined, [annotations.hooks, BEFORE]]);
    now += 1_000;
    expect(await act({ kind: 'drain' })).toMatchObject({ lookAgainAfter: REPORT - 1_000 });
    expect(grant()).toBeUndefined();
    clear(BEFORE);
    expect(await act({ kind: 'drain' })).toEqual({});
    expect(grant()).toBe('Disrupt');
  });

  it('are overdue when their time is over, and not a moment before', async () => {
    await act(TAKE);
    now += REPORT - 1;
    expect(await act({ kind: 'drain' })).toMatchObject({ hooksAreOverdue: false, lookAgainAfter: 1 });
    now += 1;
    const report = await act({ kind: 'drain' });
    expect(report).toMatchObject({ hooksAreOverdue: true });
    expect(report).toHaveProperty('lookAgainAfter', undefined);
  });

  it('are reported once when they take too long, and hold the node all the same', async () => {
    await act(TAKE);
    now += REPORT;
    for (let look = 0; look < 2; look += 1) {
      expect(await act({ kind: 'drain' })).toMatchObject({ hooksAreOverdue: true });
      now += 24 * REPORT;
    }
    expect(grant()).toBeUndefined();
    expect(overdue()).toEqual([
      ['Warning', 'a', 'HooksOverdue', expect.stringMatching(/^Node a has been waiting since .*: lb$/)],
    ]);
  });

  it('are forgotten with an update that is called off', async () => {
    await act(TAKE);
    await act({ kind: 'back-out', why: 'the pool is paused' });
    expect([isCordoned(), set()]).toEqual([false, []]);
    expect(cluster.get(Leases, leaseNameOf('a'))?.spec?.holderIdentity ?? '').toBe('');
    await act(TAKE);
    expect([grant(), set()]).toEqual([undefined, [annotations.hooks, BEFORE]]);
  });

  it('hold no node once the pool names none', async () => {
    await act(TAKE);
    expect(await act({ kind: 'drain' }, noHooks)).toEqual({});
    expect(grant()).toBe('Disrupt');
  });

  it('are not requested of a new node, on which no pod can be, nor for a live update', async () => {
    const [key = ''] = STARTUP_TAINTS;
    cluster.put(Nodes, aNode('a', { spec: { taints: [{ key, effect: 'NoSchedule' }] } }));
    await act(TAKE);
    expect([grant(), set()]).toEqual(['Disrupt', []]);
    cluster.put(Nodes, aNode('a'));
    await act({ kind: 'take', level: 'Live' });
    expect([grant(), set()]).toEqual(['Live', []]);
    await act({ kind: 'finish' });
    expect([grant(), set()]).toEqual([undefined, []]);
  });
});

describe('hooks after a disruption', () => {
  beforeEach(async () => {
    await act(TAKE);
    clear(BEFORE);
    await act({ kind: 'drain' });
  });

  it('hold the cordon, the grant and the lease until they are cleared', async () => {
    expect((await act({ kind: 'finish' })).note).toMatch(
      /for 1 hook .* before it is schedulable again: gpu$/,
    );
    expect([isCordoned(), grant(), set()]).toEqual([true, 'Disrupt', [annotations.hooks, AFTER]]);
    now += REPORT;
    expect(await act({ kind: 'finish' })).toMatchObject({ hooksAreOverdue: true });
    clear(AFTER);
    expect(await act({ kind: 'finish' })).toEqual({});
    expect([isCordoned(), grant(), set()]).toEqual([false, undefined, []]);
  });

  it('hold nothing where the pool has none', async () => {
    expect(await act({ kind: 'finish' }, { before: ['lb'], after: [] })).toEqual({});
    expect([isCordoned(), set()]).toEqual([false, []]);
  });

  it('wait for nothing while somebody else has the lease', async () => {
    const lease = cluster.get(Leases, leaseNameOf('a'));
    if (lease === undefined) throw new Error('it was taken');
    cluster.put(Leases, { ...lease, spec: { ...lease.spec, holderIdentity: 'ops' } });
    expect(await act({ kind: 'finish' })).toEqual({ note: 'skipped: its lease is held by ops' });
    expect(set()).toEqual([annotations.hooks]);
  });
});
