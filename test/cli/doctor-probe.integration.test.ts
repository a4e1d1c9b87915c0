/**
 * `shale doctor --probe` from where builder and nodes are: a pod, a registry with passwords, and what is left of
 * both.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DaemonSets, Deployments, Pods, Secrets } from '../../api/kubernetes.ts';
import { DAEMON_SET, NODE_PULL_SECRET, OPERATOR_DEPLOYMENT } from '../../api/names.ts';
import { exitCodes } from '../../cli/command-line/exit-codes.ts';
import { DoctorOutput } from '../../cli/doctor/finding.ts';
import { createRegistryClient } from '../../image/registry/registry-client.ts';
import { type DockerRegistry, startDockerRegistry } from '../../workshop/sandbox/docker-registry.ts';
import { PodRunner } from '../../workshop/sandbox/workloads/pod-runner.ts';
import { Workloads } from '../../workshop/sandbox/workloads/run-workloads.ts';
import { log } from '../e2e/cluster-under-test.ts';
import { patience } from '../fixtures/patience.ts';
import { pushBaseImage } from '../fixtures/registry/base-image.ts';
import { condition, type PoolCluster, PROCESSES_MS, startPoolCluster } from './cluster-with-pools.ts';
import { root } from './shale-process.ts';

/** Whose password is `secret`; bcrypt. */
const HTPASSWD = 'builder:$2b$05$wjAuzKAVhfFmsHSfAUFXzOyG123GMaVGlqlbJab4QQH5yuwLvWlZq\n';
const namespace = 'shale-system';
const stop = new AbortController();
const { signal } = stop;

let cluster: PoolCluster;
let registry: DockerRegistry;
let workloads: Promise<void>;

/**
 * A cluster whose pods run, as processes with the rights of their service accounts, and a registry that wants a
 * password.
 */
beforeAll(async () => {
  cluster = await startPoolCluster();
  const { client, dir } = cluster;
  // Of what the manifests have, nothing runs here: only what doctor makes.
  const body = { spec: { replicas: 0 } };
  await client.patch(Deployments, OPERATOR_DEPLOYMENT, { type: 'merge', body }, { namespace, signal });
  await client.delete(DaemonSets, DAEMON_SET, { namespace, signal });
  await cluster.addPool('worker', { conditions: [condition('Updated', 'True')] });
  await cluster.addNode('worker-0', 'worker');
  await cluster.addNode('spare', 'none');
  await addOperatorsPod();
  for (const part of ['registry', 'pods', 'logs']) await mkdir(path.join(dir, part));
  const htpasswd = path.join(dir, 'registry/htpasswd');
  await writeFile(htpasswd, HTPASSWD);
  registry = await startDockerRegistry({ dir: path.join(dir, 'registry'), htpasswd });
  const auths = new Map([[registry.host, { username: 'builder', password: 'secret' }]]);
  const images = createRegistryClient({ plainHttp: new Set([registry.host]), auths });
  await pushBaseImage(images, `${registry.host}/os/stock:1`, signal);
  await giveSecret('push', 'secret');
  const { url, caPem } = await cluster.accessOf(OPERATOR_DEPLOYMENT);
  const { hostname: host, port } = new URL(url);
  const runner = new PodRunner({
    environment: {
      apiServer: { host, port: Number(port), caPem },
      createToken: async ({ name }) => (await cluster.accessOf(name)).token,
      daemonHost: async () => ({ args: [] }),
      findSecret: async () => undefined,
      podsDirectory: path.join(dir, 'pods'),
    },
    shale: () => [path.join(root, 'bin/shale')],
    logFile: (pod) => path.join(dir, 'logs', pod.metadata.name),
    nodeIsUp: (node) => node !== 'gone',
    onExit: () => running.wake(),
    log,
  });
  const running = new Workloads({ client, runner, log, signal });
  workloads = running.run();
}, patience(PROCESSES_MS));
afterAll(async () => {
  stop.abort();
  await workloads;
  await registry.stop();
  await cluster.stop();
});

/** Of another image, so that it is only pretended to run: where it is, a probe goes. */
async function addOperatorsPod(): Promise<void> {
  const spec = {
    serviceAccountName: OPERATOR_DEPLOYMENT,
    nodeName: 'worker-0',
    containers: [{ name: 'operator', image: 'busybox' }],
  };
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'operator' }, spec };
  await cluster.client.create(Pods, pod, { namespace, signal });
}

async function giveSecret(name: string, password: string): Promise<void> {
  const auth = Buffer.from(`builder:${password}`).toString('base64');
  const auths = { [registry.host]: { auth } };
  const data = { '.dockerconfigjson': Buffer.from(JSON.stringify({ auths })).toString('base64') };
  const object = { apiVersion: 'v1', kind: 'Secret', metadata: { name }, data };
  await cluster.client.create(
    Secrets,
    { ...object, type: 'kubernetes.io/dockerconfigjson' },
    { namespace, signal },
  );
}

async function diagnose(...more: string[]) {
  const { host } = registry;
  const wish = ['--image-repository', `${host}/os/{pool}`, '--push-secret', 'push'];
  const base = ['--base-image', `${host}/os/stock:1`, '--plain-http', host];
  const { stdout, stderr } = await cluster.shale('doctor', ...wish, ...base, '-o', 'json', ...more);
  const found = DoctorOutput.parse(JSON.parse(stdout));
  return { stderr, found: found.filter(({ check }) => check.startsWith('registries')) };
}

test('--probe tries what enable is to be given, from where builder and nodes are, and leaves no pod behind', {
  timeout: patience(PROCESSES_MS),
}, async () => {
  const { host } = registry;
  const { found } = await diagnose('--probe', 'worker-0');
  const ofBuilder = (from: string) => [
    { level: 'ok', check: `registries, from ${from}`, what: `pool worker: can read ${host}/os/stock:1` },
    {
      level: 'ok',
      check: `registries, from ${from}`,
      what: `pool worker: can push to ${host}/os/worker:latest`,
    },
  ];
  expect(found).toMatchObject([
    ...ofBuilder('this machine'),
    {
      level: 'ok',
      check: 'registries, from this machine',
      what: `${host}/os/worker: has no image that this cluster does not record`,
    },
    ...ofBuilder('the builder'),
    // It was given no credentials, which the registry wants.
    {
      level: 'failure',
      check: 'registries, from node worker-0',
      what: expect.stringContaining(`can't reach ${host}/os/worker:latest from node worker-0`),
      fix: expect.stringContaining('Secret'),
    },
  ]);
  await giveSecret(NODE_PULL_SECRET, 'secret');
  const [, , , , , node] = (await diagnose('--probe')).found;
  expect(node).toMatchObject({
    level: 'ok',
    what: `pool worker: can reach ${host}/os/worker:latest`,
  });
  const left = (await cluster.client.list(Pods, { namespace, signal })).items;
  expect(left.map(({ metadata }) => metadata.name)).toEqual(['operator']);
});

test('a node of no pool with images is none to try from', { timeout: patience(PROCESSES_MS) }, async () => {
  const { found } = await diagnose('--probe', 'spare');
  expect(found.at(-1)).toMatchObject({ level: 'warning', check: 'registries, from node spare' });
});

test('a node that does not exist is rejected as invalid usage, also while layering is disabled', async () => {
  expect(await cluster.shale('doctor', '--probe', 'nobody')).toMatchObject({
    exitCode: exitCodes.usage,
    stderr: expect.stringContaining('--probe: no node is named nobody'),
  });
});
