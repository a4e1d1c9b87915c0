/** `shale doctor` as a process on a cluster that has faults: what it finds, and that it leaves nothing. */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { Deployments, RoleBindings, Secrets } from '../../api/kubernetes.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import { BUILDER_DEPLOYMENT, BUILDS_NAMESPACE, PAGE_DEPLOYMENT } from '../../api/names.ts';
import { DoctorOutput } from '../../cli/doctor/finding.ts';
import { createRegistryClient } from '../../image/registry/registry-client.ts';
import { builderDeployment } from '../../opt-in/builder-deployment.ts';
import { startApiServer } from '../../workshop/apiserver/start.ts';
import { startDockerRegistry } from '../../workshop/sandbox/docker-registry.ts';
import { applyObjects } from '../../workshop/sandbox/manifests/apply.ts';
import { readKustomization } from '../../workshop/sandbox/manifests/kustomization.ts';
import { grantBuilderRights } from '../e2e/builder-under-test.ts';
import { log } from '../e2e/cluster-under-test.ts';
import { patience } from '../fixtures/patience.ts';
import { pushBaseImage } from '../fixtures/registry/base-image.ts';
import {
  API_VERSION,
  condition,
  type PoolCluster,
  PROCESSES_MS,
  signal,
  startPoolCluster,
} from './cluster-with-pools.ts';
import { shale } from './shale-process.ts';

let cluster: PoolCluster;
beforeAll(async () => {
  cluster = await startPoolCluster();
  await cluster.addPool('worker', { conditions: [condition('Updated', 'True')] });
  await cluster.addNode('worker-0', 'worker');
});
afterAll(() => cluster.stop());

const namespace = 'shale-system';

async function diagnose() {
  const { stdout, exitCode } = await cluster.shale('doctor', '-o', 'json');
  return { exitCode, found: DoctorOutput.parse(JSON.parse(stdout)) };
}

test('names what is wrong, how to fix it, and what is right', {
  timeout: patience(PROCESSES_MS),
}, async () => {
  const { exitCode, found } = await diagnose();
  expect(exitCode).toBe(1);
  const wrong = found.filter(({ level }) => level !== 'ok');
  expect(wrong.map(({ what }) => what)).toEqual([
    'the operator is not running',
    'no daemon has reported yet from worker-0',
  ]);
  expect(wrong.every((finding) => finding.level !== 'ok' && finding.fix !== '')).toBe(true);
  expect(found.map(({ what }) => what)).toEqual(
    expect.arrayContaining([
      'shale-operator has the permissions that it needs',
      'shale-daemon has the permissions that it needs',
      'the 15 policies of the base are installed',
      'no pool, node or build needs attention',
      'Namespace shale-builds, its policy and a node for the pods of builds are there',
    ]),
  );
});

test('checks what the builder may do, also where its pods run', {
  timeout: patience(PROCESSES_MS),
}, async () => {
  const { client } = cluster;
  await client.create(Deployments, builderDeployment(namespace, 'shale:test', []), { signal });
  onTestFinished(() =>
    client.delete(Deployments, BUILDER_DEPLOYMENT, { namespace, signal }).then(() => undefined),
  );
  await grantBuilderRights(client, signal);
  const aboutBuilder = async () => {
    const { found } = await diagnose();
    return found.filter(({ what }) => what.startsWith(BUILDER_DEPLOYMENT)).map(({ what }) => what);
  };
  expect(await aboutBuilder()).toEqual(['machine-os-builder has the permissions that it needs']);
  await client.delete(RoleBindings, BUILDER_DEPLOYMENT, { namespace: BUILDS_NAMESPACE, signal });
  expect(await aboutBuilder()).toEqual([
    'machine-os-builder is not allowed to create pods in shale-builds, delete pods in shale-builds, create secrets in shale-builds, delete secrets in shale-builds',
  ]);
});

test('checks what the live page may do where it is installed', {
  timeout: patience(PROCESSES_MS),
}, async () => {
  const complete = await readKustomization('manifests/overlays/complete');
  const ofPage = complete.filter(({ metadata }) => /^shale-page/.test(metadata.name));
  await applyObjects(cluster.client, ofPage, { log, signal });
  onTestFinished(() =>
    cluster.client.delete(Deployments, PAGE_DEPLOYMENT, { namespace, signal }).then(() => undefined),
  );
  const aboutPage = async () => {
    const { found } = await diagnose();
    return found
      .filter(({ what }) => /page/.test(what))
      .map((finding) => [finding.level, finding.what, finding.level === 'ok' ? undefined : finding.fix]);
  };
  const stopped = [
    'warning',
    'the live page is not running, or waits for its certificate; rollouts continue',
  ];
  const logs =
    'kubectl -n shale-system describe deployment/shale-page; kubectl -n shale-system logs deployment/shale-page';
  expect(await aboutPage()).toEqual([
    ['ok', 'shale-page has the permissions that it needs', undefined],
    [...stopped, logs],
  ]);
  await cluster.client.delete(RoleBindings, PAGE_DEPLOYMENT, { namespace: 'medik8s-leases', signal });
  expect(await aboutPage()).toEqual([
    [
      'failure',
      'shale-page is not allowed to watch leases.coordination.k8s.io in medik8s-leases',
      'kubectl apply -f manifests/components/live-page/rbac.yaml',
    ],
    [...stopped, logs],
  ]);
});

test('of a cluster without Shale says what to install', { timeout: patience(PROCESSES_MS) }, async () => {
  const bare = await startApiServer();
  onTestFinished(() => bare.stop());
  const file = path.join(cluster.dir, 'bare');
  await writeFile(file, bare.kubeconfig(), { mode: 0o600 });
  const { stdout, exitCode } = await shale(['doctor'], { env: { KUBECONFIG: file, HOME: cluster.dir } });
  expect(exitCode).toBe(1);
  expect(stdout).toContain('CRDs: machineconfigpools.machineconfiguration.openshift.io is missing');
  expect(stdout).toContain('-> kubectl apply -k manifests/crds');
  expect(stdout).toContain('permissions: ServiceAccount shale-system/shale-operator does not exist');

  const dir = path.join(cluster.dir, 'registry-before');
  await mkdir(dir);
  const registry = await startDockerRegistry({ dir });
  onTestFinished(() => registry.stop());
  const authfile = path.join(dir, 'auth.json');
  await writeFile(authfile, '{"auths":{}}');
  const { host } = registry;
  const flags = ['--image-repository', `${host}/os/{pool}`, '--plain-http', host, '--authfile', authfile];
  const before = await shale(['doctor', ...flags], { env: { KUBECONFIG: file, HOME: cluster.dir } });
  expect(before.stdout).toMatch(
    new RegExp(`^ok +registries, from this machine: pool worker: can push to ${host}/os/worker:latest$`, 'm'),
  );
});

test("tries each pool's registry with its Secrets, and leaves nothing there", {
  timeout: patience(PROCESSES_MS),
}, async () => {
  const dir = path.join(cluster.dir, 'registry');
  await mkdir(dir);
  const registry = await startDockerRegistry({ dir });
  onTestFinished(() => registry.stop());
  const { host } = registry;
  const images = createRegistryClient({ plainHttp: new Set([host]) });
  await pushBaseImage(images, `${host}/os/stock:1`, signal);
  const operator = await cluster.client.get(Deployments, 'shale-operator', { namespace, signal });
  const [container] = operator.spec.template.spec.containers;
  const args = [...(container?.args ?? []), '--insecure-registry', host];
  const body = [{ op: 'replace', path: '/spec/template/spec/containers/0/args', value: args }];
  await cluster.client.patch(Deployments, 'shale-operator', { type: 'json', body }, { namespace, signal });
  const spec = {
    machineConfigPool: { name: 'worker' },
    renderedImagePushSpec: `${host}/os/worker:latest`,
    renderedImagePushSecret: { name: 'push' },
    baseImage: `${host}/os/stock:2`,
  };
  const wish = { apiVersion: API_VERSION, kind: 'MachineOSConfig', metadata: { name: 'worker' }, spec };
  await cluster.client.create(MachineOSConfigs, wish, { signal });
  const without = (await diagnose()).found.filter(({ check }) => check === 'registries, from this machine');
  expect(without).toMatchObject([
    { level: 'failure', what: 'pool worker: Secret shale-system/push: not found' },
  ]);

  const data = { '.dockerconfigjson': Buffer.from('{"auths":{}}').toString('base64') };
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'push' }, data };
  await cluster.client.create(
    Secrets,
    { ...secret, type: 'kubernetes.io/dockerconfigjson' },
    { namespace, signal },
  );
  const tried = (await diagnose()).found.filter(({ check }) => check === 'registries, from this machine');
  expect(tried).toMatchObject([
    {
      level: 'failure',
      what: expect.stringContaining(`can't read ${host}/os/stock:2 from this machine`),
    },
    { level: 'ok', what: `pool worker: can push to ${host}/os/worker:latest` },
  ]);

  await pushBaseImage(images, `${host}/os/stock:2`, signal);
  const clean = (await diagnose()).found.filter(({ check }) => check === 'registries, from this machine');
  const nothing = `${host}/os/worker: has no image that this cluster does not record`;
  expect(clean).toMatchObject([{ level: 'ok' }, { level: 'ok' }, { level: 'ok', what: nothing }]);
  const tag = `worker-${'0'.repeat(32)}`;
  const stray = await pushBaseImage(images, `${host}/os/worker:${tag}`, signal);
  const { found } = await diagnose();
  expect(found.find(({ what }) => what.startsWith(`${host}/os/worker: `))).toMatchObject({
    level: 'warning',
    what: `${host}/os/worker: 1 image not recorded by this cluster: ${stray} (${tag})`,
    fix: expect.stringContaining(`skopeo delete docker://${host}/os/worker@DIGEST`),
  });
});
