import { expect, test } from 'vitest';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import type { KubernetesObject } from '../../api/object.ts';
import { ignition, machineConfig } from '../../machineconfig/testdata/build.ts';
import { impossibleConfigs } from '../../machineconfig/testdata/impossible-configs.ts';
import { planned } from '../../test/fixtures/planned.ts';
import { offlineCluster } from '../objects/offline-cluster.ts';
import { problemsOf, renderingProblems } from '../objects/offline-problems.ts';
import { renderOffline } from '../objects/offline-rendering.ts';
import { isHindered } from '../plan.ts';
import { imageProblems } from './image-to-build.ts';

test.each(impossibleConfigs)(
  '$what: validate, plan, render and build refuse it and name both MachineConfigs',
  ({ configs }) => {
    const cluster = offlineCluster(configs);
    const [pool] = cluster.pools;
    if (pool === undefined) throw new Error('there is no pool');
    expect(problemsOf(cluster)).toEqual([]);
    const validate = renderingProblems(cluster).join();
    // The commands render and build end with these.
    const rendering = renderOffline(cluster, pool);
    const [plan] = planned(offlineCluster([]), cluster);
    expect(plan !== undefined && isHindered(plan)).toBe(true);
    const texts = [validate, JSON.stringify(rendering), JSON.stringify(plan)];
    for (const text of texts) {
      expect(text).toContain('50-one');
      expect(text).toContain('51-other');
    }
    expect(rendering.ok).toBe(false);
  },
);

const layered = (spec: object = {}): MachineOSConfig => ({
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineOSConfig',
  metadata: { name: 'worker' },
  spec: {
    machineConfigPool: { name: 'worker' },
    baseImage: 'r.example.com/os/stock:1',
    renderedImagePushSpec: 'r.example.com/os/worker:1',
    renderedImagePushSecret: { name: 'push' },
    ...spec,
  } as MachineOSConfig['spec'],
});
const pool = {
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: MachineConfigPools.kind,
  metadata: { name: 'worker' },
  spec: { machineConfigSelector: { matchLabels: { 'machineconfiguration.openshift.io/role': 'worker' } } },
} as KubernetesObject;
const whiteout = machineConfig(
  '50-ssh',
  ignition({ storage: { files: [{ path: '/etc/.wh.ssh/x', contents: { source: 'data:,' } }] } }),
);

test('what an image alone can not carry concerns layered pools alone', () => {
  const standard = offlineCluster([pool, whiteout]);
  expect(renderingProblems(standard)).toEqual([]);
  const [plan] = planned(offlineCluster([]), standard);
  expect(plan !== undefined && isHindered(plan)).toBe(false);
});

test('it is said before a build is tried, with the MachineConfig', () => {
  const after = offlineCluster([pool, whiteout, layered() as KubernetesObject]);
  const [plan] = planned(offlineCluster([]), after);
  if (plan === undefined || !('image' in plan)) throw new Error(JSON.stringify(plan));
  const problem = expect.stringMatching(/^\/etc\/\.wh\.ssh\/x: .* whiteout .* \(MachineConfig 50-ssh\)$/);
  expect(plan.image?.problems).toEqual([problem]);
  expect(isHindered(plan)).toBe(true);
  const [rendered] = after.pools;
  if (rendered === undefined) throw new Error('there is no pool');
  const rendering = renderOffline(after, rendered);
  if (!rendering.ok) throw new Error(rendering.problems.join());
  expect(imageProblems(layered().spec, rendering.rendered, rendering.configs)).toEqual([problem]);
});
