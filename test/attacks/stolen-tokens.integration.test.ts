/**
 * What the API server keeps from who has the token of a daemon or of the builder, with the base alone installed: on
 * kube-apiserver where KUBEBUILDER_ASSETS names one, else the embedded one.
 */
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
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
const MCO = '/apis/machineconfiguration.openshift.io/v1';
const BUILDS = `${MCO}/machineosbuilds`;
const REVISIONS = '/apis/shale.dev/v1/poolrevisions';
const LEASES = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases`;
const merge = 'application/merge-patch+json';

let api: Api;
let operator: string;
let builder: string;
let daemon: string;
let unbound: string;

const denied = ({ status }: Answer) => status === 403 || status === 422;
const as = (token: string) => ({ token });
const patch = (where: string, body: object, token: string) =>
  api.call('PATCH', where, body, { token, contentType: merge });

beforeAll(async () => {
  api = await startApi();
  const { signal } = new AbortController();
  const { url, token, caPem } = api.access;
  const client = createApiClient(tokenConnection(url, token, caPem));
  await applyObjects(client, await readKustomization(BASE), { log, signal });
  for (const right of builderRights(NAMESPACE))
    await client.create(right.kind, right.desired, { ...placeOf(right), signal });
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'worker-0' } };
  expect((await api.call('POST', '/api/v1/nodes', node)).status).toBe(201);
  operator = await api.tokenOf({ namespace: NAMESPACE, name: 'shale-operator' });
  builder = await api.tokenOf({ namespace: NAMESPACE, name: 'machine-os-builder' });
  daemon = await api.tokenOf({ namespace: NAMESPACE, name: 'shale-daemon', node: 'worker-0' });
  unbound = await api.tokenOf({ namespace: NAMESPACE, name: 'shale-daemon' });
  // A policy is in force a moment after it was made; until then, what it would deny is made.
  await eventually(() => api.call('POST', LEASES, lease('before-the-policy'), as(builder)), denied);
  await eventually(() => postEvent(daemon, { object: 'worker-1' }), denied);
  await eventually(() => postEvent(builder, { ...OF_A_BUILD, source: 'shale-operator' }), denied);
}, patience(90_000));
afterAll(() => api.stop());

function lease(name: string) {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace: NAMESPACE },
    spec: { holderIdentity: 'thief', leaseDurationSeconds: 86_400 },
  };
}

describe('the record of what may run', () => {
  const revision = {
    apiVersion: 'shale.dev/v1',
    kind: 'PoolRevision',
    metadata: { name: 'worker-1' },
    spec: {
      machineConfigPool: { name: 'worker' },
      revision: 1,
      machineConfig: { name: 'rendered-worker-1' },
      image: image('1'),
    },
  };

  test('is the operator’s to write; builder and daemon neither write nor delete it', async () => {
    for (const token of [builder, daemon]) {
      expect((await api.call('POST', REVISIONS, revision, as(token))).status).toBe(403);
      expect((await api.call('GET', REVISIONS, undefined, as(token))).status).toBe(403);
    }
    expect((await api.call('POST', REVISIONS, revision, as(operator))).status).toBe(201);
    for (const token of [builder, daemon]) {
      const where = `${REVISIONS}/worker-1`;
      expect((await patch(where, { spec: { image: image('e') } }, token)).status).toBe(403);
      expect((await api.call('DELETE', where, undefined, as(token))).status).toBe(403);
    }
  });

  test('is changed by nobody', async () => {
    const changed = await patch(`${REVISIONS}/worker-1`, { spec: { image: image('e') } }, api.access.token);
    expect(changed.status).toBe(422);
    expect(JSON.stringify(changed.body)).toContain('spec is immutable');
  });

  test('is not widened by the spec of a MachineConfigNode or by the status of a pool', async () => {
    const pools = `${MCO}/machineconfigpools`;
    for (const token of [builder, daemon]) {
      for (const where of [`${MCO}/machineconfignodes/worker-0`, `${pools}/worker`, `${pools}/worker/status`])
        expect((await patch(where, { spec: {}, status: {} }, token)).status).toBe(403);
    }
  });
});

test('the keys that nodes accept are the operator’s to write; builder and daemon read them', async () => {
  const configMaps = `/api/v1/namespaces/${NAMESPACE}/configmaps`;
  const where = `${configMaps}/image-signing-keys`;
  const keys = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'image-signing-keys' }, data: {} };
  for (const token of [builder, daemon])
    expect((await api.call('POST', configMaps, keys, as(token))).status).toBe(403);
  expect((await api.call('POST', configMaps, keys, as(operator))).status).toBe(201);
  for (const token of [builder, daemon]) {
    expect((await api.call('GET', where, undefined, as(token))).status).toBe(200);
    expect((await patch(where, { data: { 'a.pub': 'stolen' } }, token)).status).toBe(403);
    expect((await api.call('PUT', where, { ...keys, data: { 'a.pub': 'stolen' } }, as(token))).status).toBe(
      403,
    );
    expect((await api.call('DELETE', where, undefined, as(token))).status).toBe(403);
  }
});

test('what the operator deletes from registries is its own to write and to read', async () => {
  const configMaps = `/api/v1/namespaces/${NAMESPACE}/configmaps`;
  const record = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'pushed-images' },
    data: { a: 'a' },
  };
  expect((await api.call('POST', configMaps, record, as(operator))).status).toBe(201);
  for (const token of [builder, daemon]) {
    for (const verb of ['GET', 'DELETE'] as const)
      expect((await api.call(verb, `${configMaps}/pushed-images`, undefined, as(token))).status).toBe(403);
    expect((await patch(`${configMaps}/pushed-images`, { data: { b: 'b' } }, token)).status).toBe(403);
  }
});

/** For who may write ConfigMaps. */
describe.each(['image-signing-keys', 'pushed-images'])(
  'what the operator records in ConfigMap %s',
  (name) => {
    const configMaps = `/api/v1/namespaces/${NAMESPACE}/configmaps`;
    const where = `${configMaps}/${name}`;
    const admin = () => api.access.token;

    test.each<[string, object]>([
      ['an entry', { data: { 'planted.pub': 'planted' } }],
      ['another entry in place of one', { data: { 'a.pub': 'planted' } }],
      ['that nobody changes it again', { immutable: true }],
    ])('gets %s from the operator alone', async (_, body) => {
      const metadata = { name };
      const record = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { 'a.pub': 'a', 'b.pub': 'b' } };
      expect((await api.call('PUT', where, record, as(operator))).status).toBe(200);
      expect(denied(await patch(where, body, admin()))).toBe(true);
    });

    test('loses an entry, such as a key that was stolen', async () => {
      expect((await patch(where, { data: { 'b.pub': null } }, admin())).status).toBe(200);
    });

    test('is not created by anybody else', async () => {
      expect((await api.call('DELETE', where, undefined, as(admin()))).status).toBe(200);
      const record = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: {} };
      expect(denied(await api.call('POST', configMaps, record, as(admin())))).toBe(true);
      expect((await api.call('POST', configMaps, record, as(operator))).status).toBe(201);
    });

    test('is the matter of this policy, and no other ConfigMap', async () => {
      const other = {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: `not-${name}` },
        data: { a: 'b' },
      };
      expect((await api.call('POST', configMaps, other, as(admin()))).status).toBe(201);
    });
  },
);

describe('rendered configs', () => {
  const configs = `${MCO}/machineconfigs`;
  const owner = (uid: string) => ({ apiVersion: 'v1', kind: 'Node', name: 'worker-0', uid });
  const config = (name: string) => ({
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name, ownerReferences: [owner('1')], finalizers: ['example.com/test'] },
    spec: { config: { ignition: { version: '3.5.0' } } },
  });

  test('are created by the operator alone, with the base alone installed', async () => {
    expect((await api.call('POST', configs, config('rendered-worker-2'), as(operator))).status).toBe(201);
    expect(denied(await api.call('POST', configs, config('rendered-worker-3'), as(api.access.token)))).toBe(
      true,
    );
    expect((await api.call('POST', configs, config('50-worker'), as(api.access.token))).status).toBe(201);
  });

  test.each<[string, object]>([
    ['a mark', { metadata: { annotations: { 'shale.dev/no-reboot': '["/etc/motd"]' } } }],
    ['an owner that does not exist', { metadata: { ownerReferences: [owner('2')] } }],
    ['other content', { spec: { kernelArguments: ['quiet'] } }],
  ])('are given %s by nobody else', async (_, body) => {
    expect(denied(await patch(`${configs}/rendered-worker-2`, body, api.access.token))).toBe(true);
  });

  test('may lose their finalizers', async () => {
    const answer = await patch(
      `${configs}/rendered-worker-2`,
      { metadata: { finalizers: null } },
      api.access.token,
    );
    expect(answer.status).toBe(200);
  });
});

test('a repair, a retry, a reboot and a power-off are requested by neither builder nor daemon', async () => {
  const nodes = `${MCO}/machineconfignodes`;
  const texts = {
    'shale.dev/repair': '{"id":"stolen"}',
    'shale.dev/retry': '{"config":"stolen"}',
    'shale.dev/reboot': '{"bootID":"stolen"}',
    'shale.dev/power-off': '{"bootID":"stolen","leaseHolder":"stolen"}',
  };
  const asking = { metadata: { annotations: texts } };
  for (const name of ['worker-0', 'worker-1']) {
    const object = {
      apiVersion: 'machineconfiguration.openshift.io/v1',
      kind: 'MachineConfigNode',
      metadata: { name },
      spec: { node: { name }, pool: { name: 'worker' }, configVersion: { desired: 'rendered-worker-1' } },
    };
    expect((await api.call('POST', nodes, object)).status).toBe(201);
    const where = `${nodes}/${name}`;
    for (const token of [builder, daemon]) expect((await patch(where, asking, token)).status).toBe(403);

    const { body } = await api.call('GET', where);
    const { metadata, ...rest } = body as { readonly metadata: object };
    const withStatus = { ...rest, metadata: { ...metadata, ...asking.metadata }, status: { bootID: 'b' } };
    const written = await api.call('PUT', `${where}/status`, withStatus, as(daemon));
    if (name === 'worker-0') expect(written.status).toBe(200);
    else expect(denied(written)).toBe(true);
    const after = await api.call('GET', where);
    expect(JSON.stringify(after.body)).not.toContain('stolen');
  }
});

describe('what a daemon reads', () => {
  const core = `/api/v1/namespaces/${NAMESPACE}`;

  test.each([
    ['lists MachineConfigs', `${MCO}/machineconfigs`],
    ['lists Secrets', `${core}/secrets`],
    ['reads the signing key', `${core}/secrets/image-signing-key`],
    ['reads the Secret for pushing', `${core}/secrets/push`],
    ['lists ConfigMaps', `${core}/configmaps`],
    ['reads the Secrets of builds', '/api/v1/namespaces/shale-builds/secrets'],
    ['lists pods', '/api/v1/pods'],
  ])('it never %s', async (_, where) => {
    expect((await api.call('GET', where, undefined, as(daemon))).status).toBe(403);
  });

  test.each([`${MCO}/machineconfigs/rendered-worker-1`, `${core}/secrets/node-pull-secret`])(
    'by its name it may read %s',
    async (where) => {
      expect((await api.call('GET', where, undefined, as(daemon))).status).toBe(404);
    },
  );
});

describe('the status of a build that succeeded', () => {
  const succeeded = {
    conditions: [
      {
        type: 'Succeeded',
        status: 'True',
        reason: 'Pushed',
        message: '',
        lastTransitionTime: '2026-01-01T00:00:00Z',
      },
    ],
    digestedImagePushSpec: image('1'),
    baseImage: image('0'),
  };

  async function build(name: string, status: object): Promise<string> {
    const spec = {
      machineConfig: { name: 'rendered-worker-1' },
      machineOSConfig: { name: 'worker' },
      renderedImagePushSpec: 'registry.test:5000/os:worker',
    };
    const type = { apiVersion: 'machineconfiguration.openshift.io/v1', kind: 'MachineOSBuild' };
    const made = await api.call('POST', BUILDS, { ...type, metadata: { name }, spec }, as(builder));
    expect(made.status).toBe(201);
    expect((await put(name, status)).status).toBe(200);
    return name;
  }

  async function put(name: string, status: object | undefined): Promise<Answer> {
    const { body } = await api.call('GET', `${BUILDS}/${name}`, undefined, as(builder));
    const { status: _before, ...object } = body as { status?: object };
    const next = status === undefined ? object : { ...object, status };
    return api.call('PUT', `${BUILDS}/${name}/status`, next, as(builder));
  }

  test.each<[string, object | undefined]>([
    ['another image', { ...succeeded, digestedImagePushSpec: `evil.test/os@sha256:${'e'.repeat(64)}` }],
    ['another base', { ...succeeded, baseImage: image('e') }],
    ['another build method', { ...succeeded, builder: { imageBuilderType: 'Engine' } }],
    ['no conditions', { digestedImagePushSpec: image('e') }],
    ['nothing', undefined],
  ])('can’t be changed to %s', async (what, status) => {
    const name = await build(`changed-${what.replaceAll(' ', '-')}`, succeeded);
    const changed = await put(name, status);
    expect(changed.status).toBe(422);
    expect(JSON.stringify(changed.body)).toContain('immutable');
    const { body } = await api.call('GET', `${BUILDS}/${name}`, undefined, as(builder));
    expect(body).toMatchObject({ status: { digestedImagePushSpec: image('1') } });
  });

  test('can be written as it is, and before it succeeded', async () => {
    const name = await build('unchanged', { digestedImagePushSpec: image('2') });
    expect((await put(name, succeeded)).status).toBe(200);
    expect((await put(name, succeeded)).status).toBe(200);
  });
});

describe('leases', () => {
  test('the builder takes no lease but its own, whether or not it exists', async () => {
    const own = `${LEASES}/machine-os-builder`;
    expect((await api.call('POST', LEASES, lease('machine-os-builder'), as(builder))).status).toBe(201);
    expect((await api.call('GET', own, undefined, as(builder))).status).toBe(200);
    expect((await api.call('DELETE', own, undefined, as(builder))).status).toBe(200);
    for (const name of ['shale-operator', 'another'])
      expect(denied(await api.call('POST', LEASES, lease(name), as(builder)))).toBe(true);
    const generated = { ...lease(''), metadata: { generateName: 'shale-', namespace: NAMESPACE } };
    expect(denied(await api.call('POST', LEASES, generated, as(builder)))).toBe(true);

    const operators = `${LEASES}/shale-operator`;
    expect((await api.call('POST', LEASES, lease('shale-operator'), as(operator))).status).toBe(201);
    expect((await api.call('PUT', operators, lease('shale-operator'), as(builder))).status).toBe(403);
    expect((await api.call('DELETE', operators, undefined, as(builder))).status).toBe(403);
  });
});

interface EventOf {
  readonly object?: string;
  readonly kind?: string;
  readonly namespace?: string;
  readonly component?: string;
  /** What `kubectl` shows in the first place; the component without it. */
  readonly source?: string;
  readonly related?: object;
}

let events = 0;
function postEvent(
  token: string,
  {
    object = 'worker-0',
    kind = 'MachineConfigNode',
    namespace = 'default',
    component = 'shale-daemon',
    source = component,
    related,
  }: EventOf,
): Promise<Answer> {
  events += 1;
  const event = {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `${object}.${events}`, namespace },
    involvedObject: { apiVersion: 'v1', kind, name: object },
    type: 'Warning',
    reason: 'Forged',
    message: 'forged',
    source: { component: source },
    ...(related === undefined ? {} : { related }),
    reportingComponent: component,
    count: 1,
  };
  return api.call('POST', `/api/v1/namespaces/${namespace}/events`, event, as(token));
}

const OF_A_BUILD = { object: 'worker-1', kind: 'MachineOSBuild', component: 'machine-os-builder' };

describe('Events of the builder', () => {
  test.each<EventOf>([OF_A_BUILD, { ...OF_A_BUILD, kind: 'MachineOSConfig' }])(
    'are about what it builds: %j',
    async (of) => {
      expect((await postEvent(builder, of)).status).toBe(201);
    },
  );

  test.each<EventOf>([
    { kind: 'MachineConfigPool' },
    { kind: 'Node' },
    { kind: 'Pod', namespace: NAMESPACE },
    { namespace: 'kube-system' },
    { namespace: NAMESPACE },
    { component: 'shale-operator' },
    { component: 'kubelet', source: 'machine-os-builder' },
    { source: 'shale-operator' },
    { related: { kind: 'Node', name: 'worker-1' } },
  ])('are not %j', async (of) => {
    expect(denied(await postEvent(builder, { ...OF_A_BUILD, ...of }))).toBe(true);
  });

  test('don’t replace those of others', async () => {
    const made = await postEvent(api.access.token, { ...OF_A_BUILD, component: 'shale-operator' });
    const { name } = (made.body as { metadata: { name: string } }).metadata;
    const body = {
      source: { component: 'machine-os-builder' },
      reportingComponent: 'machine-os-builder',
      message: 'replaced',
    };
    expect(denied(await patch(`/api/v1/namespaces/default/events/${name}`, body, builder))).toBe(true);
  });
});

describe('Events of a daemon', () => {
  test.each([{}, { kind: 'Node' }])('are about its own node: %j', async (about) => {
    expect((await postEvent(daemon, about)).status).toBe(201);
  });

  test.each<EventOf>([
    { object: 'worker-1' },
    { object: 'worker-1', kind: 'Node' },
    { kind: 'Pod' },
    { kind: 'MachineConfigPool' },
    { namespace: 'kube-system' },
    { namespace: NAMESPACE },
    { component: 'shale-operator' },
    { component: 'kubelet' },
    { source: 'shale-operator' },
    { related: { kind: 'Node', name: 'worker-1' } },
  ])('are not %j', async (about) => {
    expect(denied(await postEvent(daemon, about))).toBe(true);
  });

  test('need a token that names the node', async () => {
    expect(denied(await postEvent(unbound, {}))).toBe(true);
  });

  test('don’t replace those of others', async () => {
    const { token } = api.access;
    for (const of of [{ object: 'worker-1' }, { component: 'shale-operator' }]) {
      const made = await postEvent(token, of);
      expect(made.status).toBe(201);
      const { name } = (made.body as { metadata: { name: string } }).metadata;
      const where = `/api/v1/namespaces/default/events/${name}`;
      const body = {
        involvedObject: { kind: 'MachineConfigNode', name: 'worker-0' },
        reportingComponent: 'shale-daemon',
        message: 'replaced',
      };
      expect(denied(await patch(where, body, daemon))).toBe(true);
    }
  });
});
