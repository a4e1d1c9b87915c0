import { expect, test } from 'vitest';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import type { Condition } from '../../api/object.ts';
import type { LayeredPool } from '../../predict/image/layered-pool.ts';
import type { PoolAsk } from '../../predict/plan.ts';
import { aMachineOSConfig, aPool } from '../../test/fixtures/objects.ts';
import { condition } from '../../test/fixtures/observed-cluster.ts';
import { failedBuildRemarks } from './failed-build.ts';

const CONFIG = 'rendered-worker-1';
const FAILED = condition('Failed', 'True', 'STEP 3 failed\n  no such package', 'ContainerfileFailed');
const build = (of: Condition, { config = CONFIG, pool = 'worker' } = {}): MachineOSBuild => ({
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineOSBuild',
  metadata: { name: `${pool}-${config}` },
  spec: {
    machineConfig: { name: config },
    machineOSConfig: { name: pool },
    renderedImagePushSpec: 'r.example.com/os/worker:1',
  },
  status: { conditions: [of] },
});
const before = {
  pools: [aPool('worker', { configuration: { name: CONFIG } })],
  machineOSConfigs: [aMachineOSConfig('worker')],
};
const ask: PoolAsk = { pool: 'worker', from: CONFIG, to: CONFIG, actions: [], causes: [], changes: [] };
const ANOTHER: PoolAsk = { ...ask, image: { way: 'Engine', why: 'it has a Containerfile' } };
const LAYERED: LayeredPool = { config: CONFIG, base: undefined, byEngine: true };

test.each<[string, PoolAsk, LayeredPool | undefined, string]>([
  ['builds another image', ANOTHER, LAYERED, ', and the change starts another one'],
  [
    'changes no input of the build',
    ask,
    LAYERED,
    ', and the change starts no other one: nodes keep what they run until an input of the build or its rebuild annotation changes',
  ],
  ['takes the pool to standard mode', ask, undefined, ', and the change needs no image'],
])('a change after a failed build that %s', (_what, plan, layered, end) => {
  const builds = [build(FAILED)];
  expect(failedBuildRemarks({ plan, layered }, before, builds)).toEqual([
    `the last build failed (ContainerfileFailed: STEP 3 failed; no such package)${end}`,
  ]);
});

test.each<[string, MachineOSBuild]>([
  ['succeeded', build(condition('Succeeded', 'True'))],
  ['goes on', build(condition('Building', 'True', 'attempt 2 failed', 'Retrying'))],
  ['failed for an earlier target', build(FAILED, { config: 'rendered-worker-0' })],
  ['failed for another pool', build(FAILED, { pool: 'infra' })],
])('nothing is said of a build that %s', (_what, other) => {
  expect(failedBuildRemarks({ plan: ANOTHER, layered: LAYERED }, before, [other])).toEqual([]);
});
