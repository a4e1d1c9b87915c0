import { expect, test } from 'vitest';
import { condition, machineConfigNode, node, observed } from '../../test/fixtures/observed-cluster.ts';
import { judgeNodes } from './check-cluster.ts';

const NOW = Date.parse('2026-11-20T11:00:00Z');

test.each([
  ['UnsupportedHost', /^install an OS that bootc, rpm-ostree or ostree manages/],
  ['UpdateFailed', /^run shale explain a to see/],
])('of a node that is degraded for %s the mend is its own', (reason, mend) => {
  const conditions = [condition('NodeDegraded', 'True', 'the reason in words', reason)];
  const seen = observed({ nodes: [node('a')], machineConfigNodes: [machineConfigNode('a', { conditions })] });
  const found = judgeNodes(seen, NOW).find(({ what }) => what.startsWith('a is degraded'));
  expect(found).toMatchObject({ level: 'failure', mend: expect.stringMatching(mend) });
  expect(found?.what).toContain('the reason in words');
});
