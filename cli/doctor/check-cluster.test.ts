import { expect, test } from 'vitest';
import { condition, machineConfigNode, node, observed } from '../../test/fixtures/observed-cluster.ts';
import { judgeNodes } from './check-cluster.ts';

const NOW = Date.parse('2026-11-20T11:00:00Z');

test.each([
  ['UnsupportedHost', /^install an OS that bootc, rpm-ostree or ostree manages/],
  ['UpdateFailed', /^run shale explain a to see/],
])('a node that is degraded for %s has a fix of its own', (reason, fix) => {
  const conditions = [condition('NodeDegraded', 'True', 'the reason in words', reason)];
  const cluster = observed({
    nodes: [node('a')],
    machineConfigNodes: [machineConfigNode('a', { conditions })],
  });
  const finding = judgeNodes(cluster, NOW).find(({ what }) => what.startsWith('a is degraded'));
  expect(finding).toMatchObject({ level: 'failure', fix: expect.stringMatching(fix) });
  expect(finding?.what).toContain('the reason in words');
});

test.each([
  [{ enabled: 'true', signing: 'disabled' }, true],
  [{ enabled: 'true', signing: 'required' }, false],
  [{ enabled: 'true' }, false],
  [{ enabled: 'false', signing: 'disabled' }, false],
])('of the switch %j it is %s that images are not signed', (settings, expected) => {
  const data = { imageRepository: 'r.io/os/{pool}', ...settings };
  const switchMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'on-cluster-layering' }, data };
  const findings = judgeNodes({ ...observed({}), switchMap }, NOW);
  expect(findings.some(({ what }) => what.startsWith('images are not signed'))).toBe(expected);
});
