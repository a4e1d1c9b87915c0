/** An image of `shale build` has the label that the builder writes: two processes, one registry. */
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type MachineConfiguration, MachineConfigurations } from '../../api/machine-configuration.ts';
import { MACHINE_CONFIGURATION } from '../../api/names.ts';
import { effectivePolicies, policyDigest } from '../../disruption/effective-policies.ts';
import { createRegistryClient } from '../../image/registry/registry-client.ts';
import { patience } from '../fixtures/patience.ts';
import { pushBaseImage } from '../fixtures/registry/base-image.ts';
import { MemoryRegistry } from '../fixtures/registry/memory-registry.ts';
import { type PoolCluster, PROCESSES_MS, signal, startPoolCluster } from './cluster-with-pools.ts';
import { machineConfig } from './shale-process.ts';

const timeout = patience(PROCESSES_MS);
let cluster: PoolCluster;
beforeAll(async () => {
  cluster = await startPoolCluster();
}, timeout);
afterAll(() => cluster.stop());

test('an image that is built outside of a cluster has the label that its builder would write', {
  timeout,
}, async () => {
  const registry = await MemoryRegistry.start();
  const { host } = registry;
  const client = createRegistryClient({ plainHttp: new Set([host]) });
  await pushBaseImage(client, `${host}/os/stock:1`, signal);
  const file = async (name: string, text: string) => {
    const contents = { source: `data:,${text}` };
    const files = [{ path: '/etc/containers/policy.json', contents }];
    const at = path.join(cluster.dir, name);
    await writeFile(at, machineConfig('50-policy', { storage: { files } }));
    return at;
  };
  const [before, after] = [await file('before.json', 'a'), await file('after.json', 'b')];
  const build = (...flags: string[]) =>
    cluster.shale(
      ...['build', '--pool', 'worker', '--base', `${host}/os/stock:1`, '--push', `${host}/os/worker:1`],
      ...['--plain-http', host, '--from', before, '-f', after, ...flags],
    );
  expect((await build()).stderr).toContain(': Reload(crio.service)');
  const flagged = await build('--container-runtime-unit', 'containerd.service');
  expect(flagged.stderr).toContain(': Reload(containerd.service)');
  const unknown = await build('--cluster-policies');
  expect(unknown).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('has recorded no disruption policies'),
  });

  const policies = effectivePolicies(undefined, { containerRuntimeUnit: 'containerd.service' });
  const object: MachineConfiguration = {
    apiVersion: 'operator.openshift.io/v1',
    kind: 'MachineConfiguration',
    metadata: { name: MACHINE_CONFIGURATION },
    spec: {},
  } as MachineConfiguration;
  const created = await cluster.client.create(MachineConfigurations, object, { signal });
  const status = {
    nodeDisruptionPolicyStatus: { clusterPolicies: policies },
    policyDigest: policyDigest(policies),
  };
  await cluster.client.replaceStatus(MachineConfigurations, { ...created, status }, { signal });
  const built = await build('--cluster-policies');
  expect(built.stderr).toContain(': Reload(containerd.service)');
  expect(built.exitCode).toBe(0);
});
