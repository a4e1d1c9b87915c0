import { expect, it } from 'vitest';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import { FailingSteps } from '../../cluster/failing-steps.ts';
import { aMachineConfigNode, aNode, someSettings } from '../../test/fixtures/objects.ts';
import type { NodeStep } from '../pools/node-step.ts';
import type { ObservedNode } from '../pools/pool-observation.ts';
import { assignedSettings } from '../pools/pool-settings.ts';
import { carryOut, nodeTasks, noFindings } from './carry-out.ts';
import { Lanes } from './lanes.ts';

const OLD = 'rendered-worker-1';
const NEW = 'rendered-worker-2';

function seen(name: string, spec: Partial<MachineConfigNode['spec']> = {}): ObservedNode {
  const machineConfigNode = aMachineConfigNode(name, { configVersion: { desired: OLD }, ...spec });
  return {
    node: aNode(name),
    machineConfigNode,
    lease: { by: 'nobody' },
    inMaintenance: false,
    machineDeleting: false,
  };
}

function names(count: number, prefix: string): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}${index}`);
}

function tasksOf(given: {
  readonly steps?: Readonly<Record<string, NodeStep>>;
  readonly assigned?: readonly string[];
}) {
  const { steps = {}, assigned = [] } = given;
  const target = {
    pool: 'worker',
    target: { config: NEW },
    policyDigest: undefined,
    imageSigningKeys: undefined,
    settings: assignedSettings(someSettings()),
    irreconcilable: undefined,
  };
  const nodes = [...new Set([...assigned, ...Object.keys(steps)])].toSorted().map((name) => seen(name));
  const { underWay, toStart, more } = nodeTasks(nodes, {
    steps: new Map(Object.entries(steps)),
    assign: new Map(assigned.map((name) => [name, target])),
  });
  const tasks = [...underWay, ...toStart];
  return { order: tasks.map(({ observed: { node } }) => node.metadata.name), tasks, more };
}

it('what ends work on a node comes before nodes to take, and those before targets to give', () => {
  const { order, more } = tasksOf({
    assigned: ['a'],
    steps: { b: { kind: 'take', level: 'Live' }, c: { kind: 'finish' } },
  });
  expect(order).toEqual(['c', 'b', 'a']);
  expect(more).toBe(false);
});

it('a node has its target and its step in one task; one with neither has none', () => {
  const { tasks } = tasksOf({ assigned: ['a'], steps: { a: { kind: 'back-out', why: 'another target' } } });
  expect(tasks).toMatchObject([
    {
      patch: { spec: { configVersion: { desired: NEW } } },
      step: { kind: 'back-out', why: 'another target' },
    },
  ]);
  expect(nodeTasks([seen('b')], { steps: new Map(), assign: new Map() })).toEqual({
    underWay: [],
    toStart: [],
    more: false,
  });
});

it('one look begins with a part of many nodes, and ends what is under way on all of them', () => {
  const finished = names(200, 'finished-');
  const { order, more } = tasksOf({
    assigned: names(200, 'assigned-'),
    steps: Object.fromEntries(finished.map((name) => [name, { kind: 'finish' }])),
  });
  expect(order.filter((name) => name.startsWith('finished-'))).toHaveLength(200);
  expect(order).toHaveLength(225);
  expect(more).toBe(true);
  expect(tasksOf({ assigned: names(16, 'assigned-') })).toMatchObject({ more: false });
  expect(tasksOf({ assigned: names(17, 'assigned-') })).toMatchObject({ more: true });
});

const GRANT = { level: 'Live', config: OLD, leaseHolder: 'shale-operator' } as const;

/**
 * Carries out steps that take 40 ms each, one after the other. @returns the steps taken, and whether more are to come.
 *
 * @param observed the nodes with their specs at the time of the decision, where they have changed since.
 */
async function pass(
  steps: Readonly<Record<string, NodeStep>>,
  observed: Readonly<Record<string, Partial<MachineConfigNode['spec']>>> = {},
) {
  let now = 0;
  const nodes = Object.keys(steps).map((name) => seen(name));
  const taken: string[] = [];
  const caches = {
    nodes: { get: () => undefined, size: () => nodes.length },
    machineConfigNodes: {
      get: (name: string) => nodes.find(({ node }) => node.metadata.name === name)?.machineConfigNode,
    },
  };
  const work = {
    carryOut: async (step: NodeStep) => {
      now += 40;
      taken.push(step.kind);
      return {};
    },
  };
  const findings = noFindings();
  const decision = {
    create: [],
    assign: new Map(),
    steps: new Map(Object.entries(steps)),
    startup: { admit: [] },
  };
  const parts = {
    caches,
    work,
    lanes: new Lanes({ width: 1, reserved: 0 }),
    now: () => now,
    failing: new FailingSteps({ now: () => now }),
  };
  await carryOut(
    parts as never,
    {
      nodes: nodes.map((node) => seen(node.node.metadata.name, observed[node.node.metadata.name])),
      settings: someSettings(),
    } as never,
    decision as never,
    findings,
    new AbortController().signal,
  );
  return { taken, again: findings.waits.includes(0) };
}

it('a pass that takes long leaves the rest of the nodes to the next, but ends what is under way and starts with one', async () => {
  const all = (step: NodeStep) => Object.fromEntries(names(6, `${step.kind}-`).map((name) => [name, step]));
  expect(await pass(all({ kind: 'take', level: 'Live' }))).toEqual({
    taken: ['take', 'take'],
    again: true,
  });
  const inLargePool = await pass(
    Object.fromEntries(names(1_000, 'node-').map((name) => [name, { kind: 'take', level: 'Live' }])),
  );
  expect(inLargePool.taken).toHaveLength(3);
  const ends = names(6, '').map(() => 'finish');
  expect(await pass({ ...all({ kind: 'finish' }), ...all({ kind: 'take', level: 'Live' }) })).toEqual({
    taken: [...ends, 'take'],
    again: true,
  });
  expect(await pass(all({ kind: 'finish' }))).toEqual({ taken: ends, again: false });
});

it('a node whose update was finished after the pass had observed it is left to the next pass', async () => {
  const hold = { kind: 'keep-lease', why: 'the daemon applies the update' } as const;
  const { taken } = await pass({ a: hold, b: { kind: 'finish' } }, { a: { grant: GRANT } });
  expect(taken).toEqual(['finish']);
});
