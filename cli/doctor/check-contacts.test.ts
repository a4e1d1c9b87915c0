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
  ['failure', build(condition('Failed', 'True', 'no such host', 'RegistryUnavailable')), /no such host$/],
  [
    'warning',
    build(condition('Building', 'True', 'attempt 2 of 5 failed', 'Retrying')),
    /attempt 2 of 5 failed$/,
  ],
])('of the builder: %s', (level, newest, what) => {
  const [finding] = judgeContacts(observed({ machineOSConfigs: [CONFIG], builds: [newest] }), NOW);
  expect(finding).toMatchObject({
    level,
    check: 'registries, from the builder',
    what: expect.stringMatching(what),
  });
});

test('a build that failed for another reason does not concern the registry', () => {
  const builds = [build(condition('Failed', 'True', 'a step failed', 'ContainerfileFailed'))];
  expect(judgeContacts(observed({ machineOSConfigs: [CONFIG], builds }), NOW)).toEqual([]);
});

test('a node that can not pull is named, with its message', () => {
  const spec = { configImage: { desiredImage: IMAGE } };
  const machineConfigNodes = [
    machineConfigNode('a', { configImage: { currentImage: IMAGE } }, spec),
    machineConfigNode(
      'b',
      { conditions: [condition('UpdatePrepared', 'False', 'certificate expired', 'PrepareFailed')] },
      spec,
    ),
  ];
  const judge = (nodes: typeof machineConfigNodes) =>
    judgeContacts(observed({ machineOSConfigs: [CONFIG], machineConfigNodes: nodes }), NOW).at(-1);
  expect(judge(machineConfigNodes)).toMatchObject({
    level: 'failure',
    what: "pool worker: b can't stage the image: certificate expired",
  });
  expect(judge(machineConfigNodes.slice(0, 1))).toMatchObject({
    level: 'ok',
    what: 'pool worker: the target image was pulled by 1 of 1 node',
  });
});
