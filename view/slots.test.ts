import { describe, expect, test } from 'vitest';
import type { MachineConfigNodeStatus } from '../api/machine-config-node.ts';
import { annotations } from '../api/names.ts';
import { formatStatus } from '../cli/observe/status-text.ts';
import { statusView } from '../cli/observe/status-view.ts';
import { rolloutRemarks } from '../cli/plan/rollout-remarks.ts';
import { condition, machineConfigNode, node, observed, pool } from '../test/fixtures/observed-cluster.ts';
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
