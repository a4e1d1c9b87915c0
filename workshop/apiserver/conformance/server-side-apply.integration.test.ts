/** Server-side apply as Kubernetes documents it; the same file runs against a kube-apiserver. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Api, eventually, START_MS, startApi, uniqueName } from './api.ts';
import { applier, owners } from './apply.ts';

let api: Api;
const apply = applier(() => api);
const configMaps = '/api/v1/namespaces/default/configmaps';

beforeAll(async () => {
  api = await startApi();
}, START_MS);
afterAll(() => api.stop());

const configMap = (name: string, data: Record<string, string>, metadata: object = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, ...metadata },
  data,
});

describe('apply', () => {
  test('creates an object, and records what is owned, in which version and since when', async () => {
    const name = uniqueName('created');
    const { status, body } = await apply(configMaps, configMap(name, { a: '1' }), 'first');
    expect(status).toBe(201);
    expect(body.metadata.managedFields).toEqual([
      {
        manager: 'first',
        operation: 'Apply',
        apiVersion: 'v1',
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
        fieldsType: 'FieldsV1',
        fieldsV1: { 'f:data': { 'f:a': {} } },
      },
    ]);
    const read = await api.call('GET', `${configMaps}/${name}`);
    expect(read.body.metadata.managedFields).toEqual(body.metadata.managedFields);
  });

  test('merges, and takes out what its manager applied before and no longer does', async () => {
    const name = uniqueName('pruned');
    await apply(configMaps, configMap(name, { a: '1', b: '2' }, { labels: { x: 'y' } }), 'first');
    await apply(configMaps, configMap(name, { c: '3' }), 'second');
    const { status, body } = await apply(configMaps, configMap(name, { b: '9' }), 'first');
    expect([status, body.data, body.metadata.labels]).toEqual([200, { b: '9', c: '3' }, undefined]);
    expect(owners(body)).toEqual([
      ['first', 'Apply', { 'f:data': { 'f:b': {} } }],
      ['second', 'Apply', { 'f:data': { 'f:c': {} } }],
    ]);
  });

  test('that changes nothing keeps the resourceVersion', async () => {
    const name = uniqueName('same');
    const first = (await apply(configMaps, configMap(name, { a: '1' }), 'first')).body;
    const again = (await apply(configMaps, configMap(name, { a: '1' }), 'first')).body;
    expect(again.metadata).toEqual(first.metadata);
  });

  test('of a value that another has applied is a conflict, unless it is forced or the same', async () => {
    const name = uniqueName('conflict');
    await apply(configMaps, configMap(name, { a: '1', b: '1' }), 'first');
    const refused = await apply(configMaps, configMap(name, { a: '2' }), 'second');
    expect([refused.status, refused.body.reason]).toEqual([409, 'Conflict']);
    expect(refused.body.message).toBe('Apply failed with 1 conflict: conflict with "first": .data.a');
    expect(refused.body.details.causes).toEqual([
      { reason: 'FieldManagerConflict', message: 'conflict with "first"', field: '.data.a' },
    ]);
    const both = await apply(configMaps, configMap(name, { a: '2', b: '2' }), 'second');
    expect(both.body.message).toBe(
      'Apply failed with 2 conflicts: conflicts with "first":\n- .data.a\n- .data.b',
    );
    expect((await apply(configMaps, configMap(name, { a: '1' }), 'second')).status).toBe(200);
    const forced = await apply(configMaps, configMap(name, { a: '2' }), 'second', { force: true });
    expect(forced.body.data).toEqual({ a: '2', b: '1' });
    expect(owners(forced.body)).toContainEqual(['first', 'Apply', { 'f:data': { 'f:b': {} } }]);
  });

  test('leaves what another owns, too, when one of them no longer applies it', async () => {
    const name = uniqueName('shared');
    await apply(configMaps, configMap(name, { a: '1' }), 'first');
    await apply(configMaps, configMap(name, { a: '1' }), 'second');
    expect((await apply(configMaps, configMap(name, {}), 'first')).body.data).toEqual({ a: '1' });
    expect((await apply(configMaps, configMap(name, {}), 'second')).body.data ?? {}).toEqual({});
  });

  test('names who wrote a field without applying it, and in which version', async () => {
    const name = uniqueName('updated');
    await api.call('POST', `${configMaps}?fieldManager=writer`, configMap(name, { a: '1' }));
    const { body } = await apply(configMaps, configMap(name, { a: '2' }), 'first');
    expect(body.message).toBe('Apply failed with 1 conflict: conflict with "writer" using v1: .data.a');
  });

  test('tried with dryRun answers with what would be and keeps nothing', async () => {
    const name = uniqueName('dry');
    await apply(configMaps, configMap(name, { a: '1', b: '2' }), 'first');
    const tried = await apply(configMaps, configMap(name, { a: '3' }), 'first', { dryRun: true });
    expect(tried.body.data).toEqual({ a: '3' });
    expect((await api.call('GET', `${configMaps}/${name}`)).body.data).toEqual({ a: '1', b: '2' });
  });

  test.each([
    ['without a fieldManager', '', {}, 422, 'fieldManager: Required value: is required for apply patch'],
    [
      'with managedFields',
      '?fieldManager=m',
      { managedFields: [{}] },
      400,
      'metadata.managedFields must be nil',
    ],
    ['with another name', '?fieldManager=m', { name: 'other' }, 400, 'name of the object (other)'],
  ])('%s is refused', async (_, query, metadata, status, message) => {
    const name = uniqueName('refused');
    await api.call('POST', configMaps, configMap(name, {}));
    const contentType = 'application/apply-patch+yaml';
    const body = configMap(name, { a: 'b' }, metadata);
    const answer = await api.call('PATCH', `${configMaps}/${name}${query}`, body, { contentType });
    expect(answer.status).toBe(status);
    expect(answer.body.message).toContain(message);
  });

  test('of another kind is refused, and force is for apply alone', async () => {
    const name = uniqueName('kind');
    await api.call('POST', configMaps, configMap(name, {}));
    const secret = { ...configMap(name, {}), kind: 'Secret' };
    expect((await apply(configMaps, secret, 'm')).status).toBe(400);
    const contentType = 'application/merge-patch+json';
    const forced = await api.call('PATCH', `${configMaps}/${name}?force=true`, {}, { contentType });
    expect(forced.status).toBe(422);
    expect(forced.body.message).toContain('may not be specified for non-apply patch');
  });

  test('creates only what its user may create', async () => {
    const name = uniqueName('applier');
    const rbac = '/apis/rbac.authorization.k8s.io/v1/namespaces/default';
    const metadata = { name };
    await api.call('POST', '/api/v1/namespaces/default/serviceaccounts', { metadata });
    const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'patch'] }];
    await api.call('POST', `${rbac}/roles`, { metadata, rules });
    await api.call('POST', `${rbac}/rolebindings`, {
      metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
      subjects: [{ kind: 'ServiceAccount', name, namespace: 'default' }],
    });
    const token = await api.tokenOf({ namespace: 'default', name });
    await api.call('POST', configMaps, configMap(name, {}));
    await eventually(
      () => apply(configMaps, configMap(name, { a: 'b' }), 'm', { token }),
      ({ status }) => status === 200,
    );
    const refused = await apply(configMaps, configMap(`${name}-new`, { a: 'b' }), 'm', { token });
    expect(refused.status).toBe(403);
    expect(refused.body.message).toContain('cannot create resource "configmaps"');
  });
});

describe('managedFields', () => {
  test('has who creates, updates and patches, by fieldManager or by program', async () => {
    const name = uniqueName('writers');
    const path = `${configMaps}/${name}`;
    const created = await api.call('POST', configMaps, configMap(name, { a: '1', b: '1' }), {
      userAgent: 'tool/v1 (linux)',
    });
    expect(owners(created.body)).toEqual([
      ['tool', 'Update', { 'f:data': { '.': {}, 'f:a': {}, 'f:b': {} } }],
    ]);
    const contentType = 'application/merge-patch+json';
    const patched = await api.call('PATCH', `${path}?fieldManager=z`, { data: { b: '2' } }, { contentType });
    expect(owners(patched.body)).toEqual([
      ['tool', 'Update', { 'f:data': { '.': {}, 'f:a': {} } }],
      ['z', 'Update', { 'f:data': { 'f:b': {} } }],
    ]);
    const put = { ...configMap(name, { b: '2' }), metadata: { name, labels: { x: 'y' } } };
    const { body } = await api.call('PUT', `${path}?fieldManager=z`, put);
    expect(owners(body)).toEqual([
      ['tool', 'Update', { 'f:data': {} }],
      ['z', 'Update', { 'f:data': { 'f:b': {} }, 'f:metadata': { 'f:labels': { '.': {}, 'f:x': {} } } }],
    ]);
  });

  test('has who scales, by the subresource that it scales by', async () => {
    const name = uniqueName('scaled');
    const deployments = '/apis/apps/v1/namespaces/default/deployments';
    const labels = { app: name };
    const template = { metadata: { labels }, spec: { containers: [{ name: 'a', image: 'a' }] } };
    await api.call('POST', `${deployments}?fieldManager=m`, {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name },
      spec: { replicas: 0, selector: { matchLabels: labels }, template },
    });
    const path = `${deployments}/${name}/scale`;
    const { body: before } = await api.call('GET', path);
    expect(before).toMatchObject({
      kind: 'Scale',
      spec: {},
      status: { replicas: 0, selector: `app=${name}` },
    });
    const contentType = 'application/merge-patch+json';
    const scale = { spec: { replicas: 1 } };
    const { status, body } = await api.call('PATCH', `${path}?fieldManager=scaler`, scale, { contentType });
    expect([status, body.spec]).toEqual([200, { replicas: 1 }]);
    const { body: after } = await api.call('GET', `${deployments}/${name}`);
    expect(owners(after)).toContainEqual(['scaler', 'Update', { 'f:spec': { 'f:replicas': {} } }, 'scale']);
    const stale = await api.call('PUT', path, { ...before, spec: { replicas: 5 } });
    expect(stale.status).toBe(409);
    await api.call('DELETE', `${deployments}/${name}`);
  });

  test('stays when an update leaves it out, and goes when it is emptied', async () => {
    const name = uniqueName('reset');
    const path = `${configMaps}/${name}`;
    const { body } = await api.call('POST', `${configMaps}?fieldManager=m`, configMap(name, { a: '1' }));
    const { managedFields, ...metadata } = body.metadata;
    const kept = await api.call('PUT', `${path}?fieldManager=m`, { ...body, metadata });
    expect(kept.body.metadata).toEqual({ ...metadata, managedFields });
    const contentType = 'application/merge-patch+json';
    const emptied = { metadata: { managedFields: [{}] } };
    const reset = await api.call('PATCH', `${path}?fieldManager=m`, emptied, { contentType });
    expect(reset.body.metadata.managedFields).toBeUndefined();
    const { body: applied } = await apply(configMaps, configMap(name, { a: '1' }), 'first');
    expect(owners(applied)).toEqual([
      ['before-first-apply', 'Update', { 'f:data': { '.': {}, 'f:a': {} } }],
      ['first', 'Apply', { 'f:data': { 'f:a': {} } }],
    ]);
  });

  test('of kubectl apply goes over to kubectl apply --server-side without a conflict', async () => {
    const name = uniqueName('upgraded');
    const last = {
      ...configMap(name, { a: '1' }),
      metadata: { name, annotations: {}, namespace: 'default' },
    };
    const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': `${JSON.stringify(last)}\n` };
    const object = configMap(name, { a: '1', other: '1' }, { annotations });
    await api.call('POST', `${configMaps}?fieldManager=kubectl-client-side-apply`, object);
    expect((await apply(configMaps, configMap(name, { a: '2' }), 'me')).status).toBe(409);
    expect((await apply(configMaps, configMap(name, { other: '2' }), 'kubectl')).status).toBe(409);
    const { status, body } = await apply(configMaps, configMap(name, { a: '2' }), 'kubectl');
    expect([status, body.data]).toEqual([200, { a: '2', other: '1' }]);
    expect(
      JSON.parse(body.metadata.annotations['kubectl.kubernetes.io/last-applied-configuration']).data,
    ).toEqual({ a: '2' });
  });
});
