/**
 * What the API server keeps from who has the builder's token and wants more of a node than a build needs, with the base
 * alone installed: on kube-apiserver where KUBEBUILDER_ASSETS names one, else the embedded one.
 */
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Pod } from '../../api/kubernetes.ts';
import type { NewObject } from '../../api/object.ts';
import { enginePod } from '../../builder/engine/pod/engine-pod.ts';
import { tokenConnection } from '../../cluster/connection.ts';
import { createApiClient } from '../../cluster/http-api-client.ts';
import { builderRights, placeOf } from '../../opt-in/builder-rights.ts';
import { type Answer, type Api, eventually, startApi } from '../../workshop/apiserver/conformance/api.ts';
import { applyObjects } from '../../workshop/sandbox/manifests/apply.ts';
import { readKustomization } from '../../workshop/sandbox/manifests/kustomization.ts';
import { log } from '../e2e/cluster-under-test.ts';
import { patience } from '../fixtures/patience.ts';

const NAMESPACE = 'shale-system';
const PODS = '/api/v1/namespaces/shale-builds/pods';
const BUILDS = '/api/v1/namespaces/shale-builds';
const settings = {
  engineImage: 'podman',
  shaleImage: 'shale',
  engineDisk: '1Gi',
  engineMemory: '1Gi',
  engineMemoryLimit: '2Gi',
  engineHostUsers: false,
};
const user = { build: { name: 'b', uid: 'u' }, pool: 'p', architecture: 'amd64' };
const enginePodOf = (more: Partial<typeof settings> = {}) =>
  enginePod({ name: 'engine', user, deadlineSeconds: 60 }, { ...settings, ...more });

let api: Api;
let builder: string;

const denied = ({ status }: Answer) => status === 403 || status === 422;
/** It is judged as if it were created. */
const judge = (pod: NewObject<Pod>, token = builder) =>
  api.call('POST', `${PODS}?dryRun=All`, pod, { token });
const label = (labels: Readonly<Record<string, string | null>>) =>
  api.call(
    'PATCH',
    BUILDS,
    { metadata: { labels } },
    { token: api.access.token, contentType: 'application/merge-patch+json' },
  );

beforeAll(async () => {
  api = await startApi();
  const { signal } = new AbortController();
  const { url, token, caPem } = api.access;
  const client = createApiClient(tokenConnection(url, token, caPem));
  await applyObjects(
    client,
    await readKustomization(path.join(import.meta.dirname, '../../manifests/base')),
    { log, signal },
  );
  for (const right of builderRights(NAMESPACE))
    await client.create(right.kind, right.desired, { ...placeOf(right), signal });
  builder = await api.tokenOf({ namespace: NAMESPACE, name: 'machine-os-builder' });
  // A policy is in force a moment after it was made.
  await eventually(
    () => judge(spec({ automountServiceAccountToken: true })),
    ({ body }) => JSON.stringify(body).includes('shale-build-pods'),
  );
}, patience(90_000));
afterAll(() => api.stop());

function spec(change: object): NewObject<Pod> {
  const pod = enginePodOf();
  return { ...pod, spec: { ...pod.spec, ...change } } as NewObject<Pod>;
}

function container(which: 'engine' | 'front', change: object): NewObject<Pod> {
  const { containers } = enginePodOf().spec;
  return spec({
    containers: containers.map((each) => (each.name === which ? { ...each, ...change } : each)),
  });
}

/** @returns the pod with its volume for the socket like this. */
function withSocket(emptyDir: object): NewObject<Pod> {
  const volumes = (enginePodOf().spec.volumes ?? []) as readonly { readonly name: string }[];
  return spec({ volumes: volumes.map((each) => (each.name === 'socket' ? { ...each, emptyDir } : each)) });
}

const unconfined = { type: 'Unconfined' };
const dropAll = { capabilities: { drop: ['ALL'] } };

test('the pod that the builder makes is one that it may make', async () => {
  const answer = await judge(enginePodOf());
  expect(answer.status, JSON.stringify(answer.body)).toBe(201);
});

test.each<[string, NewObject<Pod>, RegExp]>([
  ['without a user namespace of its own', enginePodOf({ engineHostUsers: true }), /host-users/],
  ['with the users of its node', spec({ hostUsers: true }), /host-users/],
  ['before all others', spec({ priorityClassName: 'system-node-critical' }), /priority class/],
  ['on a node of its choice', spec({ nodeName: 'control-plane-0' }), /scheduler/],
  ['with a volume without a limit', withSocket({}), /sizeLimit/],
  [
    'with a volume in memory',
    withSocket({ medium: 'Memory', sizeLimit: '1Gi' }),
    /sizeLimit, and is on the disk/,
  ],
  [
    'without the profile of seccomp',
    spec({ securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: unconfined } }),
    /Unconfined/,
  ],
  [
    'with another container without a profile',
    container('front', { securityContext: { ...dropAll, seccompProfile: unconfined } }),
    /Unconfined/,
  ],
  [
    'with another container without that of AppArmor',
    container('front', { securityContext: { ...dropAll, appArmorProfile: unconfined } }),
    /Unconfined/,
  ],
  [
    'of an SELinux type that may do everything',
    container('engine', { securityContext: { ...dropAll, seLinuxOptions: { type: 'spc_t' } } }),
    /SELinux type/,
  ],
  [
    'with a sysctl',
    spec({
      securityContext: { runAsNonRoot: true, sysctls: [{ name: 'kernel.shm_rmid_forced', value: '1' }] },
    }),
    /sysctls/,
  ],
])('no pod starts %s', async (_, pod, why) => {
  const answer = await judge(pod);
  expect(denied(answer)).toBe(true);
  expect(JSON.stringify(answer.body)).toMatch(why);
});

// kube-apiserver gives a container without a limit that of the LimitRange; the embedded server has none, and the policy
// decides.
test.each([
  ['any', container('engine', { resources: {} })],
  ['the disk', container('front', { resources: { limits: { memory: '1Gi' } } })],
])('no container runs without a limit of %s', async (_, pod) => {
  const answer = await judge(pod);
  if (denied(answer)) expect(JSON.stringify(answer.body)).toMatch(/limits of memory and ephemeral-storage/);
  else {
    const { spec: given } = answer.body as Pod;
    for (const { resources } of given.containers)
      expect(resources).toMatchObject({
        limits: { memory: expect.any(String), 'ephemeral-storage': expect.any(String) },
      });
  }
});

describe('what an admin permits by a label of the namespace', () => {
  test('is a pod without a user namespace, on a cluster that has none', async () => {
    expect((await label({ 'shale.dev/host-users': 'allowed' })).status).toBe(200);
    const pod = enginePodOf({ engineHostUsers: true });
    const answer = await eventually(
      () => judge(pod),
      ({ status }) => status === 201,
    );
    expect(answer.status).toBe(201);
    expect((await label({ 'shale.dev/host-users': null })).status).toBe(200);
    await eventually(() => judge(pod), denied);
  });

  test('the builder can’t label it', async () => {
    const body = { metadata: { labels: { 'shale.dev/host-users': 'allowed' } } };
    const answer = await api.call('PATCH', BUILDS, body, {
      token: builder,
      contentType: 'application/merge-patch+json',
    });
    expect(answer.status).toBe(403);
  });
});

test('what the pods of builds take together has a limit', async () => {
  const quota = await api.call('GET', `${BUILDS}/resourcequotas/build-pods`, undefined, {
    token: api.access.token,
  });
  expect(quota.body).toMatchObject({
    spec: {
      hard: {
        pods: expect.any(String),
        'limits.memory': expect.any(String),
        'limits.ephemeral-storage': expect.any(String),
      },
    },
  });
  for (const kind of ['resourcequotas', 'limitranges'])
    expect(
      (await api.call('DELETE', `${BUILDS}/${kind}/build-pods`, undefined, { token: builder })).status,
    ).toBe(403);
});
