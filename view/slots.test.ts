import { describe, expect, test } from 'vitest';
import type { MachineConfigNodeStatus } from '../api/machine-config-node.ts';
import { annotations } from '../api/names.ts';
import { explainNode, formatExplanation } from '../cli/explain-command.ts';
import { formatStatus } from '../cli/observe/status-text.ts';
import { statusView } from '../cli/observe/status-view.ts';
import { rolloutRemarks } from '../cli/plan/rollout-remarks.ts';
import { REBOOT } from '../test/fixtures/objects.ts';
import { condition, machineConfigNode, node, observed, pool } from '../test/fixtures/observed-cluster.ts';
import { nodeView } from './node-view.ts';
import { slotsTakenIn } from './slots.ts';

const NOW = Date.parse('2026-11-20T10:05:00Z');
const degraded: MachineConfigNodeStatus = {
  conditions: [condition('NodeDegraded', 'True', '/etc/motd was changed')],
};
const flag = { [annotations.plannedMaintenance]: '{"by":"ops"}' };

function cluster(
  nodes: readonly ReturnType<typeof node>[],
  b: MachineConfigNodeStatus = {},
  maxUnavailable?: number | string,
) {
  const made = pool([condition('Updating', 'True', 'message of the operator', 'MaxUnavailableReached')]);
  const worker = {
    ...made,
    spec: { ...made.spec, ...(maxUnavailable === undefined ? {} : { maxUnavailable }) },
  };
  return observed({
    pools: [worker],
    nodes,
    machineConfigNodes: [machineConfigNode('a'), machineConfigNode('b', b)],
  });
}

const taken = (of: ReturnType<typeof cluster>) => of.pools.map((each) => slotsTakenIn(each, of, NOW))[0];

describe('plan says that nothing can start, and what would change it', () => {
  test.each<[string, ReturnType<typeof cluster>, RegExp | undefined]>([
    [
      'in maintenance',
      cluster([node('a'), node('b', flag, true)]),
      /: node b uses up .*; to end it: shale maintenance end b; or raise/,
    ],
    ['cordoned', cluster([node('a'), node('b', {}, true)]), /; kubectl uncordon b; or raise maxUnavailable$/],
    ['drifted', cluster([node('a'), node('b')], degraded), /: \/etc\/motd was changed; see shale status b;/],
    ['in service', cluster([node('a'), node('b')]), undefined],
    ['cordoned, of two slots', cluster([node('a'), node('b', {}, true)], {}, 2), undefined],
    ['cordoned, of half of the nodes', cluster([node('a'), node('b', {}, true)], {}, '50%'), /uncordon b/],
    [
      'under Shale’s own cordon',
      cluster([node('a'), node('b', { [annotations.cordonedByShale]: 'true' }, true)]),
      undefined,
    ],
  ])('where a node is %s', (_, of, expected) => {
    if (expected === undefined) expect(taken(of)).toBeUndefined();
    else expect(taken(of)).toMatch(expected);
    const remarks = (disrupts: boolean) =>
      rolloutRemarks(['worker'], of.pools, of, NOW, disrupts).filter((line) =>
        line.startsWith('no node can start'),
      );
    expect(remarks(true)).toHaveLength(expected === undefined ? 0 : 1);
    expect(remarks(false)).toEqual([]);
  });
});

test('status says it as well of a pool that is Degraded', () => {
  const of = cluster([node('a'), node('b', {}, true)]);
  const pools = of.pools.map((each) => ({
    ...each,
    status: { conditions: [...(each.status?.conditions ?? []), condition('Degraded', 'True', 'b failed')] },
  }));
  const text = formatStatus(statusView({ ...of, pools }, NOW), { wide: false, allNodes: false, now: NOW });
  expect(text).toContain('error: pool worker: b failed');
  expect(text).toContain('pool worker: Updates wait since 10:00 UTC: message of the operator');
});

describe('a node whose failure domain has no room', () => {
  const ZONE = 'topology.kubernetes.io/zone';
  const plan = {
    config: 'rendered-worker-1',
    staged: true,
    actions: [...REBOOT],
    causes: [],
    source: 'x',
  };
  const staged: MachineConfigNodeStatus = {
    conditions: [condition('UpdatePrepared', 'True', 'waits for permission')],
    plan,
  };
  const inZone = (name: string, zone: string, cordoned = false) => {
    const { metadata, ...object } = node(name, {}, cordoned);
    return { ...object, metadata: { ...metadata, labels: { [ZONE]: zone } } };
  };
  const mine = (name: string) => {
    const { metadata, ...object } = inZone(name, 'a', true);
    return { ...object, metadata: { ...metadata, annotations: { [annotations.cordonedByShale]: 'true' } } };
  };
  const racks = (
    first: ReturnType<typeof inZone>,
    more: object = {},
    conditions = [condition('Updating', 'True')],
  ) => {
    const made = pool(conditions);
    return observed({
      pools: [
        {
          ...made,
          spec: {
            ...made.spec,
            maxUnavailable: 3,
            shale: { failureDomains: { topologyKey: ZONE } },
            ...more,
          },
        },
      ],
      nodes: [first, inZone('a2', 'a'), inZone('b1', 'b')],
      machineConfigNodes: ['a1', 'a2', 'b1'].map((name) => machineConfigNode(name, staged)),
    });
  };
  const viewOf = (name: string, of: ReturnType<typeof racks>) => {
    const object = of.machineConfigNodes.find(({ metadata }) => metadata.name === name);
    return object && nodeView(object, of, NOW);
  };
  const waits = 'waits: failure domain a has 1 of 1 unavailable: a1';

  test.each([
    ['cordoned', inZone('a1', 'a', true), true],
    ['updated by the rollout', mine('a1'), undefined],
  ])('waits for the one that is %s, and says so everywhere', (_, first, byOthers) => {
    const of = racks(first);
    expect(viewOf('a2', of)).toMatchObject({
      what: waits,
      domain: 'a',
      fullDomain: { name: 'failure domain a', unavailable: ['a1'], most: 1, byOthers },
    });
    expect(viewOf('b1', of)).toMatchObject({ what: 'waits for permission', fullDomain: undefined });
    const text = formatStatus(statusView(of, NOW), { wide: false, allNodes: false, now: NOW });
    expect(text).toContain(waits);
    const explained = explainNode('a2', of, [], NOW);
    expect(explained && formatExplanation(explained)).toContain(`  state: staged: ${waits}`);
  });

  test.each<[string, ReturnType<typeof racks>]>([
    ['has room', racks(inZone('a1', 'a'))],
    ['is of a pool that is paused', racks(inZone('a1', 'a', true), { paused: true })],
    ['is of a pool that sets no limit', racks(inZone('a1', 'a', true), { shale: {} })],
    ['is of a pool whose own limit is reached', racks(inZone('a1', 'a', true), { maxUnavailable: 1 })],
    [
      'is of a pool that has stopped',
      racks(inZone('a1', 'a', true), {}, [condition('Updating', 'False', '', 'RolloutStopped')]),
    ],
  ])('has nothing to say where it %s', (_, of) => {
    const seen = viewOf('a2', of);
    expect(seen?.fullDomain).toBeUndefined();
    expect(seen?.what).toMatch(/^waits(?: for permission|: the (?:pool is paused|rollout has stopped))$/);
  });

  test('is named by what plan says, with what would change it', () => {
    const of = racks(inZone('a1', 'a', true));
    expect(of.pools.map((each) => slotsTakenIn(each, of, NOW))).toEqual([
      "no node of failure domain a can start: node a1 uses up the domain's maxUnavailable: cordoned, and not by Shale; kubectl uncordon a1; or raise the domain's maxUnavailable",
    ]);
    const free = racks(inZone('a1', 'a'));
    expect(free.pools.map((each) => slotsTakenIn(each, free, NOW))).toEqual([undefined]);
  });
});
