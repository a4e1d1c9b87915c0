/**
 * Builder and operator push, pull and delete with Secrets that objects name. People who may write these objects, and
 * may read no Secret, want them used: on kube-apiserver where KUBEBUILDER_ASSETS names one, else the embedded one, with
 * the base alone installed.
 */
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { tokenConnection } from '../../cluster/connection.ts';
import { createApiClient } from '../../cluster/http-api-client.ts';
import { builderRights, placeOf } from '../../opt-in/builder-rights.ts';
import { type Answer, type Api, eventually, startApi } from '../../workshop/apiserver/conformance/api.ts';
import { applyObjects } from '../../workshop/sandbox/manifests/apply.ts';
import { readKustomization } from '../../workshop/sandbox/manifests/kustomization.ts';
import { log } from '../e2e/cluster-under-test.ts';
import { image } from '../fixtures/objects.ts';
import { patience } from '../fixtures/patience.ts';

const BASE = path.join(import.meta.dirname, '../../manifests/base');
const NAMESPACE = 'shale-system';
const GROUP = 'machineconfiguration.openshift.io';
const CONFIGS = `/apis/${GROUP}/v1/machineosconfigs`;
const BUILDS = `/apis/${GROUP}/v1/machineosbuilds`;
const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const merge = 'application/merge-patch+json';

let api: Api;
let operator: string;
let builder: string;
/** May patch the MachineOSConfigs called attacker and new, and create such objects. */
let author: string;
/** The same, and may use the Secret `shared`. */
let user: string;
/** May do everything with MachineOSBuilds. */
let janitor: string;

const refused = ({ status, body }: Answer) =>
  status === 403 && /may not use Secret|written by Shale|only who may update/.test(body.message);
const patch = (where: string, body: object, token: string) =>
  api.call('PATCH', where, body, { token, contentType: merge });

/** @returns the token of somebody with these rights in the cluster and these in Shale's namespace. */
async function somebody(name: string, cluster: object[], own: object[] = []): Promise<string> {
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name } };
  expect((await api.call('POST', '/api/v1/namespaces/default/serviceaccounts', account)).status).toBe(201);
  const subjects = [{ kind: 'ServiceAccount', name, namespace: 'default' }];
  const grant = async (where: string, kind: string, plural: string, rules: object[]) => {
    const type = { apiVersion: 'rbac.authorization.k8s.io/v1', metadata: { name } };
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind, name };
    const role = await api.call('POST', `${where}/${plural}`, { ...type, kind, rules });
    const binding = { ...type, kind: `${kind}Binding`, roleRef, subjects };
    const bound = await api.call('POST', `${where}/${plural.slice(0, -1)}bindings`, binding);
    expect([role.status, bound.status]).toEqual([201, 201]);
  };
  await grant(RBAC, 'ClusterRole', 'clusterroles', cluster);
  await grant(`${RBAC}/namespaces/${NAMESPACE}`, 'Role', 'roles', own);
  return api.tokenOf({ namespace: 'default', name });
}

beforeAll(async () => {
  api = await startApi();
  const { signal } = new AbortController();
  const { url, token, caPem } = api.access;
  const client = createApiClient(tokenConnection(url, token, caPem));
  await applyObjects(client, await readKustomization(BASE), { log, signal });
  for (const right of builderRights(NAMESPACE))
    await client.create(right.kind, right.desired, { ...placeOf(right), signal });
  operator = await api.tokenOf({ namespace: NAMESPACE, name: 'shale-operator' });
  builder = await api.tokenOf({ namespace: NAMESPACE, name: 'machine-os-builder' });
  const one = { apiGroups: [GROUP], resources: ['machineosconfigs'] };
  const rights = [
    { ...one, resourceNames: ['attacker', 'new'], verbs: ['get', 'patch', 'update'] },
    { ...one, verbs: ['create'] },
  ];
  author = await somebody('author', rights);
  const secrets = { apiGroups: [''], resources: ['secrets'] };
  user = await somebody('user', rights, [{ ...secrets, resourceNames: ['shared'], verbs: ['use'] }]);
  const builds = { apiGroups: [GROUP], resources: ['machineosbuilds', 'machineosbuilds/status'] };
  janitor = await somebody('janitor', [{ ...builds, verbs: ['*'] }]);
  // A policy is in force a moment after it was made; until then, what it would deny is made.
  await eventually(async () => {
    const answer = await api.call('POST', CONFIGS, config('new', { push: 'theirs' }), { token: author });
    await api.call('DELETE', `${CONFIGS}/new`);
    return answer;
  }, refused);
  await eventually(async () => {
    const answer = await api.call('POST', BUILDS, build('new'), { token: janitor });
    await api.call('DELETE', `${BUILDS}/new`);
    return answer;
  }, refused);
}, patience(90_000));
afterAll(() => api.stop());

function config(pool: string, { push = 'own-push', pull = 'own-pull' } = {}) {
  return {
    apiVersion: `${GROUP}/v1`,
    kind: 'MachineOSConfig',
    metadata: { name: pool },
    spec: {
      machineConfigPool: { name: pool },
      baseImagePullSecret: { name: pull },
      renderedImagePushSecret: { name: push },
      renderedImagePushSpec: `registry.test:5000/os/${pool}:latest`,
    },
  };
}

function withoutSecrets({ spec, ...rest }: ReturnType<typeof config>) {
  const { machineConfigPool, renderedImagePushSpec } = spec;
  return { ...rest, spec: { machineConfigPool, renderedImagePushSpec } };
}

function build(name: string) {
  return {
    apiVersion: `${GROUP}/v1`,
    kind: 'MachineOSBuild',
    metadata: {
      name,
      annotations: { 'shale.dev/earlier-images': '', 'shale.dev/push-secret': 'victims-push' },
    },
    spec: {
      machineConfig: { name: 'rendered-victim-1' },
      machineOSConfig: { name: 'victim' },
      renderedImagePushSpec: `registry.test:5000/os/victim:${name}`,
    },
  };
}

describe('who may patch one pool’s MachineOSConfig', () => {
  beforeEach(async () => {
    await api.call('DELETE', `${CONFIGS}/attacker`);
    expect((await api.call('POST', CONFIGS, config('attacker'))).status).toBe(201);
  });

  test.each<[string, object]>([
    ['push with another pool’s Secret', { renderedImagePushSecret: { name: 'victims-push' } }],
    ['push with the Secret of the signing key', { renderedImagePushSecret: { name: 'image-signing-key' } }],
    ['pull with another pool’s Secret', { baseImagePullSecret: { name: 'victims-push' } }],
    ['pull with the nodes’ Secret', { baseImagePullSecret: { name: 'node-pull-secret' } }],
    ['push with the Secret for pulling', { renderedImagePushSecret: { name: 'own-pull' } }],
    [
      'push elsewhere with the pool’s Secret',
      { renderedImagePushSpec: 'registry.test:5000/app/prod:latest' },
    ],
  ])('can’t have builds %s', async (_, spec) => {
    const where = `${CONFIGS}/attacker`;
    const before = (await api.call('GET', where)).body.spec;
    const answer = await patch(where, { spec }, author);
    expect(answer.body.message).toMatch(/you may not use Secret shale-system\/.*the verb use on this Secret/);
    const { metadata } = (await api.call('GET', where)).body;
    const replaced = { ...config('attacker'), metadata, spec: { ...before, ...spec } };
    expect(refused(await api.call('PUT', where, replaced, { token: author }))).toBe(true);
    expect((await api.call('GET', where)).body.spec).toEqual(before);
  });

  test('can’t create one with another pool’s Secret', async () => {
    for (const secrets of [{ push: 'victims-push' }, { pull: 'victims-push' }])
      expect(refused(await api.call('POST', CONFIGS, config('new', secrets), { token: author }))).toBe(true);
  });

  test.each<[string, object]>([
    ['packages', { packages: ['strace'] }],
    ['the Secrets that it has', { renderedImagePushSecret: { name: 'own-push' } }],
    ['no Secrets', { baseImagePullSecret: null, renderedImagePushSecret: null }],
    [
      'another repository without a Secret',
      { renderedImagePushSecret: null, renderedImagePushSpec: 'a.test/b:c' },
    ],
  ])('may give it %s', async (_, spec) => {
    expect((await patch(`${CONFIGS}/attacker`, { spec }, author)).status).toBe(200);
  });

  test('can’t have it taken for one that the layering switch made, whose repository nobody asks about', async () => {
    const labels = { 'shale.dev/made-by-switch': 'true' };
    expect(refused(await patch(`${CONFIGS}/attacker`, { metadata: { labels } }, author))).toBe(true);
    const { body } = await api.call('GET', `${CONFIGS}/attacker`);
    const labelled = { ...body, metadata: { ...body.metadata, labels } };
    const made = await api.call('PUT', `${CONFIGS}/attacker`, labelled, { token: operator });
    expect(made.status).toBe(200);
    expect((await patch(`${CONFIGS}/attacker`, { spec: { packages: ['strace'] } }, author)).status).toBe(200);
    const other = { metadata: { labels: { 'shale.dev/made-by-switch': 'yes' } } };
    expect(refused(await patch(`${CONFIGS}/attacker`, other, author))).toBe(true);
    const without = { metadata: { labels: { 'shale.dev/made-by-switch': null } } };
    expect((await patch(`${CONFIGS}/attacker`, without, author)).status).toBe(200);
    const planted = { ...withoutSecrets(config('new')), metadata: { name: 'new', labels } };
    expect(refused(await api.call('POST', CONFIGS, planted, { token: author }))).toBe(true);
  });

  test('may name a Secret that they may use, without reading it, and no other', async () => {
    const where = `${CONFIGS}/attacker`;
    const named = { baseImagePullSecret: { name: 'shared' }, renderedImagePushSecret: { name: 'shared' } };
    expect((await patch(where, { spec: named }, user)).status).toBe(200);
    const secret = `/api/v1/namespaces/${NAMESPACE}/secrets/shared`;
    expect((await api.call('GET', secret, undefined, { token: user })).status).toBe(403);
    const other = { renderedImagePushSecret: { name: 'victims-push' } };
    expect(refused(await patch(where, { spec: other }, user))).toBe(true);
  });
});

test('the operator creates and changes MachineOSConfigs with the Secrets of the switch', async () => {
  const made = await api.call('POST', CONFIGS, config('switched', { push: 'shared' }), { token: operator });
  expect(made.status).toBe(201);
  const spec = config('switched', { push: 'other' }).spec;
  const changed = await api.call('PUT', `${CONFIGS}/switched`, { ...made.body, spec }, { token: operator });
  expect(changed.status).toBe(200);
});

describe('who may write MachineOSBuilds', () => {
  const where = `${BUILDS}/victim-1`;
  const theirs = image('e');

  beforeEach(async () => {
    await api.call('DELETE', where);
    expect((await api.call('POST', BUILDS, build('victim-1'), { token: builder })).status).toBe(201);
  });

  test('can’t create one that has images deleted, or that the builder would push for', async () => {
    for (const annotations of [build('').metadata.annotations, undefined]) {
      const planted = { ...build('victim-2'), metadata: { name: 'victim-2', annotations } };
      expect(refused(await api.call('POST', BUILDS, planted, { token: janitor }))).toBe(true);
    }
  });

  test.each<[string, object]>([
    ['images to delete', { metadata: { annotations: { 'shale.dev/earlier-images': theirs } } }],
    [
      'no record of images, so that its tag is deleted',
      { metadata: { annotations: { 'shale.dev/earlier-images': null } } },
    ],
    ['a Secret to delete with', { metadata: { annotations: { 'shale.dev/push-secret': 'another' } } }],
    ['another build whose image it is', { metadata: { annotations: { 'shale.dev/relabels': 'victim-0' } } }],
  ])('can’t give one %s', async (_, body) => {
    expect(refused(await patch(where, body, janitor))).toBe(true);
    const status = { pushedImages: [theirs], digestedImagePushSpec: theirs };
    expect(refused(await patch(`${where}/status`, { ...body, status }, janitor))).toBe(true);
  });

  test('can’t have its status list images to delete', async () => {
    const status = { pushedImages: [theirs], digestedImagePushSpec: theirs };
    expect(refused(await patch(`${where}/status`, { status }, janitor))).toBe(true);
    expect((await patch(`${where}/status`, { status }, builder)).status).toBe(403);
    const { body } = await api.call('GET', where, undefined, { token: builder });
    const written = await api.call('PUT', `${where}/status`, { ...body, status }, { token: builder });
    expect(written.status).toBe(200);
    expect(refused(await patch(`${where}/status`, { status: null }, janitor))).toBe(true);
  });

  test('may label and annotate it for themselves, and delete it', async () => {
    const own = { metadata: { labels: { team: 'a' }, annotations: { 'example.com/note': 'b' } } };
    expect((await patch(where, own, janitor)).status).toBe(200);
    expect((await api.call('DELETE', where, undefined, { token: janitor })).status).toBe(200);
  });
});
