import { beforeEach, describe, expect, it } from 'vitest';
import { Nodes } from '../../api/kubernetes.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import { STARTUP_TAINTS } from '../../api/startup-taint.ts';
import {
  NEW,
  RolloutOfPool,
  STAGED,
  START,
  UPDATED,
  WORKER,
} from '../../test/fixtures/fleet/rollout-of-pool.ts';
import { aMachineConfigNode, aNode } from '../../test/fixtures/objects.ts';
import { defaultRolloutOptions as options } from '../options.ts';

const signal = new AbortController().signal;

let world: RolloutOfPool;

beforeEach(() => {
  world = new RolloutOfPool();
});

describe('a node without a MachineConfigNode', () => {
  it('is given one, which the garbage collector deletes with the node', async () => {
    world.cluster.put(
      Nodes,
      aNode('new', { metadata: { name: 'new', uid: 'uid-new', labels: { [WORKER]: '' } } }),
    );
    await world.look();
    const { metadata, spec } = world.cluster.get(MachineConfigNodes, 'new') ?? {};
    expect(metadata?.ownerReferences).toEqual([
      { apiVersion: 'v1', kind: 'Node', name: 'new', uid: 'uid-new' },
    ]);
    expect(spec).toEqual({
      node: { name: 'new' },
      pool: { name: 'worker' },
      configVersion: { desired: NEW },
    });
  });

  it('that somebody else gave one meanwhile is no failure; any other refusal is', async () => {
    world.cluster.put(
      Nodes,
      aNode('new', { metadata: { name: 'new', uid: 'uid-new', labels: { [WORKER]: '' } } }),
    );
    world.operator.catchUp();
    world.cluster.put(MachineConfigNodes, aMachineConfigNode('new'));
    await expect(world.controller.reconcile('worker', signal)).resolves.toBeDefined();
    world.cluster.remove(MachineConfigNodes, 'new');
    world.operator.catchUp();
    world.cluster.trouble = () => 'unavailable';
    await expect(world.controller.reconcile('worker', signal)).rejects.toMatchObject({
      errors: [{ status: 503 }],
    });
  });
});

describe('a node with a startup taint', () => {
  const OTHER = { key: 'example.com/gpu', value: 'yes', effect: 'NoExecute' };

  function putNew(status: typeof UPDATED | typeof STAGED): void {
    world.putNode('new', status);
    const creationTimestamp = new Date(START).toISOString();
    const metadata = { name: 'new', uid: 'uid-new', labels: { [WORKER]: '' }, creationTimestamp };
    const taints = [{ key: STARTUP_TAINTS[0], effect: 'NoSchedule' }, OTHER];
    world.cluster.put(Nodes, aNode('new', { metadata, spec: { taints } }));
  }

  it('loses it, and no other, once it runs the target, and is marked as in service', async () => {
    putNew(UPDATED);
    await world.look();
    const node = world.cluster.get(Nodes, 'new');
    expect(node?.spec?.taints).toEqual([OTHER]);
    expect(node?.metadata.annotations?.[annotations.inService]).toBe('true');
    expect(world.reasons()).toContain('Normal new Configured');
    expect(world.verdict('NewNodesWaiting')).toBe('undefined undefined');
  });

  it('keeps it in a paused pool, which says why, and is reported once when it is overdue', async () => {
    world.putPool({}, { paused: true });
    putNew(STAGED);
    await world.look();
    expect(world.verdict('NewNodesWaiting')).toBe('True BeingConfigured');
    world.now = START + options.reports.newNodeAfterSeconds * 1000;
    await world.look();
    await world.look();
    expect(world.verdict('NewNodesWaiting')).toBe('True Overdue');
    expect(world.reasons().filter((each) => each === 'Warning new NotConfigured')).toHaveLength(1);
    expect(world.operator.events.at(-1)?.[3]).toMatch(/still has its startup taint: the pool is paused$/);
    expect(world.cluster.get(Nodes, 'new')?.spec?.taints).toHaveLength(2);
    world.putPool();
    putNew(UPDATED);
    await world.look();
    expect(world.cluster.get(Nodes, 'new')?.spec?.taints).toEqual([OTHER]);
  });
});
