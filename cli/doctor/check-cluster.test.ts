import { expect, test } from 'vitest';
import type { DaemonSet } from '../../api/kubernetes.ts';
import { condition, machineConfigNode, node, observed } from '../../test/fixtures/observed-cluster.ts';
import { judgeNodes, judgeProcesses } from './check-cluster.ts';

const NOW = Date.parse('2026-11-20T11:00:00Z');

test.each([
  ['UnsupportedHost', /^install an OS that bootc, rpm-ostree or ostree manages/],
  ['UpdateFailed', /^run shale explain a to see/],
])('a node that is degraded for %s has a fix of its own', (reason, mend) => {
  const conditions = [condition('NodeDegraded', 'True', 'the reason in words', reason)];
  const cluster = observed({
    nodes: [node('a')],
    machineConfigNodes: [machineConfigNode('a', { conditions })],
  });
  const finding = judgeNodes(cluster, NOW).find(({ what }) => what.startsWith('a is degraded'));
  expect(finding).toMatchObject({ level: 'failure', mend: expect.stringMatching(mend) });
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

test.each([
  [1, 1, 'ok', '1 node daemon is ready'],
  [3, 3, 'ok', '3 node daemons are ready'],
  [1, 0, 'failure', '1 of 1 node daemon is not ready'],
  [4, 3, 'failure', '1 of 4 node daemons is not ready'],
  [4, 1, 'failure', '3 of 4 node daemons are not ready'],
])('of %i daemons %i are ready', (desiredNumberScheduled, numberReady, level, what) => {
  const daemons = {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'shale-daemon' },
    status: { desiredNumberScheduled, numberReady },
  } as DaemonSet;
  const [, finding] = judgeProcesses(observed({}), daemons, 'shale-system');
  expect(finding).toMatchObject({ level, what });
});
