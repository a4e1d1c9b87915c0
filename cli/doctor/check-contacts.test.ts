import { expect, test } from 'vitest';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import type { Condition } from '../../api/object.ts';
import { condition, machineConfigNode, observed, SINCE } from '../../test/fixtures/observed-cluster.ts';
import { judgeContacts } from './check-contacts.ts';

const NOW = Date.parse(SINCE) + 3_600_000;
const IMAGE = `r.example.com/os/worker@sha256:${'1'.repeat(64)}`;
const CONFIG = {
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineOSConfig',
  metadata: { name: 'worker' },
  spec: { machineConfigPool: { name: 'worker' }, renderedImagePushSpec: 'r.example.com/os/worker:latest' },
};

function build(...conditions: Condition[]): MachineOSBuild {
  return {
    apiVersion: CONFIG.apiVersion,
    kind: 'MachineOSBuild',
    metadata: { name: 'worker-1', creationTimestamp: SINCE },
    spec: {
      machineConfig: { name: 'rendered-worker-1' },
      machineOSConfig: { name: 'worker' },
      renderedImagePushSpec: 'r.example.com/os/worker:1',
    },
    status: { conditions, buildEnd: SINCE, digestedImagePushSpec: IMAGE },
  };
}

test.each([
  ['ok', build(condition('Succeeded', 'True')), /the builder pushed .*, 1h ago$/],
  ['ok', build(condition('Building', 'True', 'pushing')), /the builder is working on worker-1$/],
])('of the builder: %s', (level, newest, what) => {
  const [finding] = judgeContacts(observed({ machineOSConfigs: [CONFIG], builds: [newest] }), NOW);
  expect(finding).toMatchObject({
    level,
    check: 'registries, from the builder',
    what: expect.stringMatching(what),
  });
});

test.each([
  ['failed', condition('Failed', 'True', 'no such host', 'RegistryUnavailable')],
  ['was interrupted', condition('Interrupted', 'True')],
])('a build that %s proves nothing', (_what, ended) => {
  expect(judgeContacts(observed({ machineOSConfigs: [CONFIG], builds: [build(ended)] }), NOW)).toEqual([]);
});

test('nodes that have pulled their image are counted', () => {
  const spec = { configImage: { desiredImage: IMAGE } };
  const pulled = machineConfigNode('a', { configImage: { currentImage: IMAGE } }, spec);
  const failing = machineConfigNode(
    'b',
    { conditions: [condition('UpdatePrepared', 'False', 'certificate expired', 'PrepareFailed')] },
    spec,
  );
  const judge = (...machineConfigNodes: readonly (typeof pulled)[]) =>
    judgeContacts(observed({ machineOSConfigs: [CONFIG], machineConfigNodes }), NOW).at(-1);
  expect(judge(pulled, failing)).toMatchObject({
    level: 'ok',
    what: 'pool worker: the target image was pulled by 1 of 2 nodes',
  });
  expect(judge(failing)).toMatchObject({
    level: 'warning',
    what: 'pool worker: no node has pulled its image yet',
  });
});
