/** The archive as a file: what is in it, its mode, and that nothing is written over. */
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Nodes, Secrets } from '../../api/kubernetes.ts';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import { createEventRecorder } from '../../cluster/events.ts';
import { log } from '../e2e/cluster-under-test.ts';
import { patience } from '../fixtures/patience.ts';
import { condition, type PoolCluster, PROCESSES_MS, signal, startPoolCluster } from './cluster-with-pools.ts';
import { machineConfig } from './shale-process.ts';

const CANARY = 'hunter2hunter2';
let cluster: PoolCluster;
beforeAll(async () => {
  cluster = await startPoolCluster();
  await cluster.addPool('worker', { conditions: [condition('Updated', 'True')] });
  await cluster.addNode('worker-0', 'worker');
  const config = {
    passwd: { users: [{ name: 'core', passwordHash: CANARY }] },
    storage: { files: [{ path: '/var/lib/kubelet/config.json', contents: { source: `data:,${CANARY}` } }] },
  };
  const object = JSON.parse(machineConfig('20-pull-secret', config)) as MachineConfig;
  await cluster.client.create(MachineConfigs, object, { signal });
  const data = { '.dockerconfigjson': Buffer.from(CANARY).toString('base64') };
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'push' }, type: 'Opaque', data };
  const events = createEventRecorder(cluster.client, 'test', log);
  events.warning(
    await cluster.client.get(Nodes, 'worker-0', { signal }),
    'DrainBlocked',
    'pod web\nis in the way',
  );
  await cluster.client.create(Secrets, secret, { namespace: 'shale-system', signal });
});
afterAll(() => cluster.stop());

test('one file has everything that a report needs, and no secret', {
  timeout: patience(PROCESSES_MS),
}, async () => {
  const file = path.join(cluster.dir, 'report.tar.gz');
  const { exitCode, stdout } = await cluster.shale('gather', '-o', file);
  expect(exitCode).toBe(0);
  expect(stdout).toContain(file);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  const names = (await execa('tar', ['-tzf', file])).stdout;
  expect(names).toContain('/objects/machineconfigpools.machineconfiguration.openshift.io/worker.yaml');
  expect(names).toContain('/objects/secrets/shale-system/push.yaml');
  expect(names).toContain('/objects/deployments.apps/shale-system/shale-operator.yaml');
  const all = (await execa('tar', ['-xzOf', file])).stdout;
  expect(all).toContain('/var/lib/kubelet/config.json');
  expect(all).toContain(' Warning DrainBlocked Node/worker-0 (1): pod web; is in the way');
  expect(all).toContain('warning: no operator is running');
  expect(all).not.toContain(CANARY);
  expect(all).not.toContain(Buffer.from(CANARY).toString('base64'));
});

test('a file that is there is not written over', { timeout: patience(PROCESSES_MS) }, async () => {
  const file = path.join(cluster.dir, 'kubeconfig');
  const { exitCode, stderr } = await cluster.shale('gather', '-o', file);
  expect(exitCode).toBe(2);
  expect(stderr).toContain("kubeconfig can't be written: EEXIST");
});
