/** Reads and writes of objects as Kubernetes documents them; the same file runs against a kube-apiserver. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Api, START_MS, startApi, uniqueName } from './api.ts';

let api: Api;
beforeAll(async () => {
  api = await startApi();
}, START_MS);
afterAll(() => api.stop());

const configMaps = '/api/v1/namespaces/default/configmaps';
const configMap = (name: string, data: Record<string, string> = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  data,
});

describe('create', () => {
  test('fills in what the server sets and returns it', async () => {
    const name = uniqueName('create');
    const { status, body } = await api.call('POST', configMaps, configMap(name, { a: 'b' }));
    expect(status).toBe(201);
    expect(body).toMatchObject({
      kind: 'ConfigMap',
      metadata: { name, namespace: 'default' },
      data: { a: 'b' },
    });
    expect(body.metadata.uid).toMatch(/^[0-9a-f-]{36}$/);
    expect(body.metadata.resourceVersion).toMatch(/^\d+$/);
    expect(body.metadata.creationTimestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  });

  test('makes a name from generateName', async () => {
    const metadata = { generateName: 'made-' };
    const { body } = await api.call('POST', configMaps, { ...configMap(''), metadata });
    expect(body.metadata.name).toMatch(/^made-[a-z0-9]{5}$/);
  });

  test('of a name that exists is a conflict', async () => {
    const name = uniqueName('twice');
    await api.call('POST', configMaps, configMap(name));
    const { status, body } = await api.call('POST', configMaps, configMap(name));
    expect(status).toBe(409);
    expect(body).toMatchObject({ kind: 'Status', status: 'Failure', reason: 'AlreadyExists', code: 409 });
    expect(body.message).toBe(`configmaps "${name}" already exists`);
  });

  test.each([
    ['a name that is none', configMap('Not_A_Name'), 422, 'Invalid'],
    ['no name', { ...configMap(''), metadata: {} }, 422, 'Invalid'],
    [
      'a label that is none',
      { ...configMap('a'), metadata: { name: 'a', labels: { a: 'b c' } } },
      422,
      'Invalid',
    ],
    ['another kind', { ...configMap('a'), kind: 'Secret' }, 400, 'BadRequest'],
    [
      'a resourceVersion',
      { ...configMap('a'), metadata: { name: 'a', resourceVersion: '5' } },
      500,
      undefined,
    ],
    ['another namespace', { ...configMap('a'), metadata: { name: 'a', namespace: 'x' } }, 400, 'BadRequest'],
  ])('refuses %s', async (_, body, status, reason) => {
    const answer = await api.call('POST', configMaps, body);
    expect([answer.status, answer.body.reason]).toEqual([status, reason]);
  });

  test('in a namespace that is not there is refused', async () => {
    const { status, body } = await api.call('POST', '/api/v1/namespaces/nowhere/configmaps', configMap('a'));
    expect(status).toBe(404);
    expect(body.message).toBe('namespaces "nowhere" not found');
  });

  test('tried with dryRun keeps nothing', async () => {
    const name = uniqueName('dry');
    expect((await api.call('POST', `${configMaps}?dryRun=All`, configMap(name))).status).toBe(201);
    expect((await api.call('GET', `${configMaps}/${name}`)).status).toBe(404);
  });

  test('turns stringData of a Secret into data', async () => {
    const name = uniqueName('secret');
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name }, stringData: { a: 'b' } };
    const { body } = await api.call('POST', '/api/v1/namespaces/default/secrets', secret);
    expect(body).toMatchObject({ type: 'Opaque', data: { a: 'Yg==' } });
    expect(body.stringData).toBeUndefined();
  });
});

describe('update', () => {
  test('with a stale resourceVersion is a conflict, without one goes through', async () => {
    const name = uniqueName('update');
    const first = (await api.call('POST', configMaps, configMap(name))).body;
    const path = `${configMaps}/${name}`;
    const second = await api.call('PUT', path, { ...first, data: { a: '1' } });
    expect(second.status).toBe(200);
    const stale = await api.call('PUT', path, { ...first, data: { a: '2' } });
    expect([stale.status, stale.body.reason]).toEqual([409, 'Conflict']);
    expect(stale.body.message).toContain(
      'the object has been modified; please apply your changes to the latest version',
    );
    expect((await api.call('PUT', path, configMap(name, { a: '3' }))).status).toBe(200);
  });

  test('that changes nothing keeps the resourceVersion', async () => {
    const name = uniqueName('same');
    const first = (await api.call('POST', configMaps, configMap(name, { a: '1' }))).body;
    const again = (await api.call('PUT', `${configMaps}/${name}`, first)).body;
    expect(again.metadata.resourceVersion).toBe(first.metadata.resourceVersion);
  });

  test('leaves what the server sets as it is', async () => {
    const name = uniqueName('kept');
    const first = (await api.call('POST', configMaps, configMap(name))).body;
    const write = (more: object) =>
      api.call('PUT', `${configMaps}/${name}`, {
        ...first,
        metadata: { ...first.metadata, ...more },
        data: { a: 'b' },
      });
    const { body } = await write({ creationTimestamp: '2001-01-01T00:00:00Z' });
    expect(body.metadata.creationTimestamp).toBe(first.metadata.creationTimestamp);
    const refused = await write({
      resourceVersion: body.metadata.resourceVersion,
      deletionTimestamp: '2001-01-01T00:00:00Z',
    });
    expect([refused.status, refused.body.reason]).toEqual([422, 'Invalid']);
    expect(refused.body.message).toContain('metadata.deletionTimestamp: Invalid value');
  });
  test('under another name is refused', async () => {
    const name = uniqueName('name');
    await api.call('POST', configMaps, configMap(name));
    expect((await api.call('PUT', `${configMaps}/${name}`, configMap('other'))).status).toBe(400);
  });
});

describe('status', () => {
  const nodes = '/api/v1/nodes';

  test('is written by its subresource alone, and nothing else is', async () => {
    const name = uniqueName('node');
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name } };
    const created = (await api.call('POST', nodes, node)).body;
    const status = { nodeInfo: { bootID: 'b' } };
    const ignored = await api.call('PUT', `${nodes}/${name}`, {
      ...created,
      spec: { unschedulable: true },
      status,
    });
    expect(ignored.body.spec.unschedulable).toBe(true);
    expect(ignored.body.status?.nodeInfo?.bootID ?? '').toBe('');
    const written = await api.call('PUT', `${nodes}/${name}/status`, { ...ignored.body, spec: {}, status });
    expect(written.body.status.nodeInfo.bootID).toBe('b');
    expect(written.body.spec.unschedulable).toBe(true);
    await api.call('DELETE', `${nodes}/${name}`);
  });
});

describe('patch', () => {
  test('takes JSON, merge and strategic merge patches', async () => {
    const name = uniqueName('patch');
    const path = `${configMaps}/${name}`;
    await api.call('POST', configMaps, configMap(name, { a: '1', b: '2' }));
    const merged = await api.call(
      'PATCH',
      path,
      { data: { a: null, c: '3' } },
      { contentType: 'application/merge-patch+json' },
    );
    expect(merged.body.data).toEqual({ b: '2', c: '3' });
    const operations = [
      { op: 'test', path: '/data/b', value: '2' },
      { op: 'remove', path: '/data/b' },
    ];
    const patched = await api.call('PATCH', path, operations, { contentType: 'application/json-patch+json' });
    expect(patched.body.data).toEqual({ c: '3' });
    const strategic = { metadata: { labels: { x: 'y' } } };
    const labelled = await api.call('PATCH', path, strategic, {
      contentType: 'application/strategic-merge-patch+json',
    });
    expect(labelled.body.metadata.labels).toEqual({ x: 'y' });
  });

  test('whose test fails changes nothing', async () => {
    const name = uniqueName('tested');
    await api.call('POST', configMaps, configMap(name, { a: '1' }));
    const operations = [
      { op: 'replace', path: '/data/a', value: '2' },
      { op: 'test', path: '/data/a', value: '1' },
    ];
    const { status } = await api.call('PATCH', `${configMaps}/${name}`, operations, {
      contentType: 'application/json-patch+json',
    });
    expect(status).toBe(422);
    expect((await api.call('GET', `${configMaps}/${name}`)).body.data).toEqual({ a: '1' });
  });

  test('merges conditions by their type', async () => {
    const name = uniqueName('conditions');
    await api.call('POST', '/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name } });
    const contentType = 'application/strategic-merge-patch+json';
    const patch = (type: string, status: string) =>
      api.call(
        'PATCH',
        `/api/v1/nodes/${name}/status`,
        { status: { conditions: [{ type, status }] } },
        { contentType },
      );
    await patch('Ready', 'False');
    await patch('DiskPressure', 'False');
    const { body } = await patch('Ready', 'True');
    const states = body.status.conditions
      .map(({ type, status }: Record<string, string>) => `${type}=${status}`)
      .sort();
    expect(states).toEqual(['DiskPressure=False', 'Ready=True']);
    await api.call('DELETE', `/api/v1/nodes/${name}`);
  });

  test('of an unknown type is refused', async () => {
    const name = uniqueName('media');
    await api.call('POST', configMaps, configMap(name));
    const { status } = await api.call(
      'PATCH',
      `${configMaps}/${name}`,
      {},
      { contentType: 'application/json' },
    );
    expect(status).toBe(415);
  });
});

describe('the log of a pod', () => {
  const pods = '/api/v1/namespaces/default/pods';
  const pod = (...containers: string[]) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: uniqueName('logs') },
    spec: {
      // No scheduler knows the label, and so no kubelet is asked.
      nodeSelector: { 'example.org/none': '' },
      containers: containers.map((name) => ({ name, image: 'a' })),
    },
  });

  test('is empty before the pod has a node', async () => {
    const one = pod('a');
    await api.call('POST', pods, one);
    const { status, body } = await api.call('GET', `${pods}/${one.metadata.name}/log`);
    expect([status, body]).toEqual([204, '']);
    await api.call('DELETE', `${pods}/${one.metadata.name}`);
  });

  test.each([
    ['of a container that it does not have', 'container=c', 400, 'container c is not valid for pod'],
    ['of no container where there are several', '', 400, 'choose one of: [a b]'],
    ['with less than no lines', 'container=a&tailLines=-1', 422, 'tailLines: Invalid value: -1: must be'],
    ['since less than now', 'container=a&sinceSeconds=0', 422, 'sinceSeconds: Invalid value: 0: must be'],
  ])('%s is refused', async (_, query, status, message) => {
    const two = pod('a', 'b');
    await api.call('POST', pods, two);
    const answer = await api.call('GET', `${pods}/${two.metadata.name}/log?${query}`);
    expect(answer.status).toBe(status);
    expect(answer.body.message).toContain(message);
    await api.call('DELETE', `${pods}/${two.metadata.name}`);
  });

  test('that is not there is 404', async () => {
    expect((await api.call('GET', `${pods}/nobody/log`)).status).toBe(404);
  });
});

describe('delete', () => {
  test('checks its preconditions', async () => {
    const name = uniqueName('delete');
    const { body } = await api.call('POST', configMaps, configMap(name));
    const path = `${configMaps}/${name}`;
    const wrong = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid: 'x' } };
    expect((await api.call('DELETE', path, wrong)).status).toBe(409);
    const right = { ...wrong, preconditions: { uid: body.metadata.uid } };
    const gone = await api.call('DELETE', path, right);
    expect([gone.status, gone.body.status]).toEqual([200, 'Success']);
    expect((await api.call('GET', path)).status).toBe(404);
  });

  test('waits for finalizers', async () => {
    const name = uniqueName('finalizer');
    const path = `${configMaps}/${name}`;
    await api.call('POST', configMaps, {
      ...configMap(name),
      metadata: { name, finalizers: ['example.org/a'] },
    });
    await api.call('DELETE', path);
    const marked = (await api.call('GET', path)).body;
    expect(marked.metadata.deletionTimestamp).toBeDefined();
    const finalizers = { metadata: { finalizers: null } };
    await api.call('PATCH', path, finalizers, { contentType: 'application/merge-patch+json' });
    expect((await api.call('GET', path)).status).toBe(404);
  });

  test.each<[string, string, object | undefined, number]>([
    ['in the query', '?dryRun=All', undefined, 200],
    ['in the body, as kubectl does', '', { dryRun: ['All'] }, 200],
    ['in the query, with a body that asks for none', '?dryRun=All', { propagationPolicy: 'Background' }, 404],
  ])('with dryRun %s', async (_, query, options, status) => {
    const name = uniqueName('dry');
    await api.call('POST', configMaps, configMap(name));
    const body = options && { apiVersion: 'v1', kind: 'DeleteOptions', ...options };
    expect((await api.call('DELETE', `${configMaps}/${name}${query}`, body)).status).toBe(200);
    expect((await api.call('GET', `${configMaps}/${name}`)).status).toBe(status);
  });

  test.each<[string, object, string]>([
    [
      'both ways to orphan',
      { propagationPolicy: 'Orphan', orphanDependents: true },
      'orphanDependents and deletionPropagation cannot be both set',
    ],
    ['an unknown policy', { propagationPolicy: 'Later' }, 'propagationPolicy: Unsupported value: "Later"'],
    ['an unknown dry run', { dryRun: ['Some'] }, 'dryRun: Unsupported value: '],
  ])('with %s is refused, and deletes nothing', async (_, options, why) => {
    const name = uniqueName('options');
    await api.call('POST', configMaps, configMap(name));
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', ...options };
    const refused = await api.call('DELETE', `${configMaps}/${name}`, body);
    expect(refused.status).toBe(422);
    expect(JSON.stringify(refused.body)).toContain(JSON.stringify(why).slice(1, -1));
    expect((await api.call('GET', `${configMaps}/${name}`)).status).toBe(200);
  });

  test.each([
    ['POST', 'dryRun=Some', 'dryRun: Unsupported value'],
    ['POST', 'fieldValidation=Loose', 'fieldValidation: Unsupported value: \\"Loose\\"'],
  ])('%s with %s is refused', async (verb, query, why) => {
    const refused = await api.call(verb, `${configMaps}?${query}`, configMap(uniqueName('options')));
    expect(refused.status).toBe(422);
    expect(JSON.stringify(refused.body)).toContain(why);
  });

  test('of a collection with dryRun keeps it', async () => {
    const label = uniqueName('label');
    const metadata = { name: uniqueName('collection'), labels: { [label]: 'yes' } };
    await api.call('POST', configMaps, { ...configMap(''), metadata });
    const selected = `${configMaps}?labelSelector=${label}`;
    const options = { apiVersion: 'v1', kind: 'DeleteOptions', dryRun: ['All'] };
    expect((await api.call('DELETE', selected, options)).status).toBe(200);
    expect((await api.call('GET', selected)).body.items).toHaveLength(1);
  });

  test('of a collection takes what a selector chooses', async () => {
    const label = uniqueName('label');
    for (const chosen of ['yes', 'yes', 'no']) {
      const metadata = { name: uniqueName('collection'), labels: { [label]: chosen } };
      await api.call('POST', configMaps, { ...configMap(''), metadata });
    }
    await api.call('DELETE', `${configMaps}?labelSelector=${label}=yes`);
    const { body } = await api.call('GET', `${configMaps}?labelSelector=${label}`);
    expect(body.items).toHaveLength(1);
  });
});

describe('list', () => {
  test('comes in pages', async () => {
    const label = uniqueName('page');
    const named = ['a', 'b', 'c'].map((letter) => uniqueName(`page-${letter}`));
    for (const name of named)
      await api.call('POST', configMaps, { ...configMap(name), metadata: { name, labels: { label } } });
    const path = `${configMaps}?labelSelector=label%3D${label}&limit=2`;
    const first = (await api.call('GET', path)).body;
    const second = (await api.call('GET', `${path}&continue=${encodeURIComponent(first.metadata.continue)}`))
      .body;
    const seen = [...first.items, ...second.items].map(({ metadata }) => metadata.name);
    expect(seen).toEqual(named);
    expect(first.kind).toBe('ConfigMapList');
    expect(second.metadata.continue ?? '').toBe('');
  });

  test('by fields it can not select by is refused', async () => {
    expect((await api.call('GET', `${configMaps}?fieldSelector=data.a%3Db`)).status).toBe(400);
    const name = uniqueName('field');
    await api.call('POST', configMaps, configMap(name));
    const { body } = await api.call('GET', `/api/v1/configmaps?fieldSelector=metadata.name%3D${name}`);
    expect(body.items).toHaveLength(1);
  });

  test('is a table for clients that request one', async () => {
    const { body } = await api.call('GET', '/api/v1/namespaces', undefined, {
      accept: 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json',
    });
    expect(body.kind).toBe('Table');
    expect(body.columnDefinitions.map(({ name }: { name: string }) => name)).toEqual([
      'Name',
      'Status',
      'Age',
    ]);
    expect(body.rows.map(({ cells }: { cells: string[] }) => cells[0])).toContain('kube-system');
  });

  test('of what is not there is 404', async () => {
    expect((await api.call('GET', '/api/v1/smiles')).status).toBe(404);
    expect((await api.call('GET', '/apis/example.org/v1/smiles')).status).toBe(404);
  });
});
