/** What server-side apply takes from schemas; the same file runs against a kube-apiserver. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Api, type Body, eventually, START_MS, startApi, uniqueName } from './api.ts';
import { applier, owners } from './apply.ts';

let api: Api;
const apply = applier(() => api);
const group = 'apply.example.org';
const gadgets = `/apis/${group}/v1/gadgets`;

const part = {
  type: 'object',
  required: ['name'],
  properties: {
    name: { type: 'string' },
    port: { type: 'integer', default: 80 },
    size: { type: 'integer' },
  },
};
const list = (type: string, items: object, more: object = {}) => ({
  type: 'array',
  'x-kubernetes-list-type': type,
  items,
  ...more,
});
const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `gadgets.${group}` },
  spec: {
    group,
    scope: 'Cluster',
    names: { plural: 'gadgets', singular: 'gadget', kind: 'Gadget', listKind: 'GadgetList' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                properties: {
                  size: { type: 'integer' },
                  color: { type: 'string', default: 'red' },
                  parts: list('map', part, { 'x-kubernetes-list-map-keys': ['name', 'port'] }),
                  tags: list('set', { type: 'string' }),
                  steps: list('atomic', { type: 'string' }),
                  free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
                  place: {
                    type: 'object',
                    'x-kubernetes-map-type': 'atomic',
                    properties: { room: { type: 'string' }, shelf: { type: 'string' } },
                  },
                },
              },
              status: { type: 'object', properties: { state: { type: 'string' } } },
            },
          },
        },
      },
    ],
  },
};

beforeAll(async () => {
  api = await startApi();
  await api.call('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition);
  await eventually(
    () => api.call('GET', gadgets),
    ({ status }) => status === 200,
  );
  // Field management of a definition begins a moment after its objects are served.
  const probe = { apiVersion: `${group}/v1`, kind: 'Gadget', metadata: { name: 'probe' } };
  await eventually(
    () => apply(gadgets, probe, 'prober'),
    ({ status }) => status < 300,
  );
}, START_MS);
afterAll(() => api.stop());

const gadget = (name: string, spec: object, more: object = {}) => ({
  apiVersion: `${group}/v1`,
  kind: 'Gadget',
  metadata: { name },
  spec,
  ...more,
});

describe('the schema', () => {
  test('says how lists are merged: by keys, as a set, or not at all', async () => {
    const name = uniqueName('lists');
    const parts = (...names: string[]) => names.map((each) => ({ name: each, size: 1 }));
    await apply(
      gadgets,
      gadget(name, { parts: parts('a', 'b'), tags: ['x', 'y'], steps: ['one', 'two'] }),
      'first',
    );
    const second = { parts: [{ name: 'c' }, { name: 'a', port: 81 }], tags: ['z'] };
    const added = await apply(gadgets, gadget(name, second), 'second');
    expect(added.body.spec.parts).toEqual([
      { name: 'a', port: 80, size: 1 },
      { name: 'b', port: 80, size: 1 },
      { name: 'c', port: 80 },
      { name: 'a', port: 81 },
    ]);
    expect([...added.body.spec.tags].sort()).toEqual(['x', 'y', 'z']);
    expect(owners(added.body)).toContainEqual([
      'second',
      'Apply',
      {
        'f:spec': {
          'f:parts': {
            'k:{"name":"a","port":81}': { '.': {}, 'f:name': {}, 'f:port': {} },
            'k:{"name":"c","port":80}': { '.': {}, 'f:name': {} },
          },
          'f:tags': { 'v:"z"': {} },
        },
      },
    ]);
    const whole = await apply(gadgets, gadget(name, { steps: ['one'] }), 'second');
    expect(whole.body.message).toContain('conflict with "first": .spec.steps');
    const taken = await apply(gadgets, gadget(name, { parts: parts('b'), tags: ['y'] }), 'first');
    expect(taken.body.spec.parts).toEqual([
      { name: 'b', port: 80, size: 1 },
      { name: 'c', port: 80 },
      { name: 'a', port: 81 },
    ]);
    expect([...taken.body.spec.tags].sort()).toEqual(['y', 'z']);
    expect(taken.body.spec.steps).toBeUndefined();
  });

  test('says what is owned as a whole, and nothing about what it leaves open', async () => {
    const name = uniqueName('whole');
    const spec = { place: { room: '1' }, free: { a: { b: 1 }, list: [1, 2] } };
    const { body } = await apply(gadgets, gadget(name, spec), 'first');
    expect(body.spec.color).toBe('red');
    expect(owners(body)).toEqual([
      [
        'first',
        'Apply',
        {
          'f:spec': {
            'f:free': { 'f:a': { '.': {}, 'f:b': {} }, 'f:list': {} },
            'f:place': {},
          },
        },
      ],
    ]);
    const other = await apply(gadgets, gadget(name, { place: { shelf: '2' } }), 'second');
    expect(other.body.message).toContain('.spec.place');
  });

  test('refuses a field that it does not have, and values of another type', async () => {
    const name = uniqueName('unknown');
    const unknown = await apply(gadgets, gadget(name, { siez: 1 }), 'm');
    expect(unknown.body.message).toContain('.spec.siez: field not declared in schema');
    const typed = await apply(gadgets, gadget(name, { size: 'x' }), 'm');
    expect(typed.body.message).toContain('.spec.size: expected numeric (int or float), got string');
    const twice = await apply(gadgets, gadget(name, { tags: ['x', 'x'] }), 'm');
    expect(twice.body.message).toContain('.spec.tags: duplicate entries for key [="x"]');
  });

  test('of a status subresource has owners of its own', async () => {
    const name = uniqueName('status');
    await apply(gadgets, gadget(name, { size: 1 }, { status: { state: 'new' } }), 'first');
    const status = { state: 'done' };
    const missing = gadget(uniqueName('none'), {}, { status });
    expect((await apply(gadgets, missing, 'c', { subresource: '/status' })).status).toBe(404);
    const { body } = await apply(gadgets, gadget(name, { size: 9 }, { status }), 'controller', {
      subresource: '/status',
      force: true,
    });
    expect([body.spec.size, body.status]).toEqual([1, { state: 'done' }]);
    expect(owners(body)).toContainEqual(['controller', 'Apply', { 'f:status': { 'f:state': {} } }, 'status']);
    expect(owners(body)).toContainEqual(['first', 'Apply', { 'f:spec': { 'f:size': {} } }]);
  });

  test('of built-in kinds is known, too', async () => {
    const name = uniqueName('workload');
    const deployments = '/apis/apps/v1/namespaces/default/deployments';
    const labels = { app: name };
    const deployment = (containers: object[]) => ({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name },
      spec: {
        replicas: 0,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers } },
      },
    });
    const main = { name: 'main', image: 'a', ports: [{ containerPort: 80 }] };
    await apply(deployments, deployment([main]), 'first');
    const side = { name: 'side', image: 'b' };
    const { body } = await apply(deployments, deployment([side]), 'second');
    expect(body.spec.template.spec.containers.map((each: Body) => each.name)).toEqual(['main', 'side']);
    const { fieldsV1 } = body.metadata.managedFields.find(({ manager }: Body) => manager === 'first');
    expect(fieldsV1['f:spec']['f:selector']).toEqual({});
    expect(fieldsV1['f:spec']['f:template']['f:spec']['f:containers']).toEqual({
      'k:{"name":"main"}': {
        '.': {},
        'f:image': {},
        'f:name': {},
        'f:ports': { 'k:{"containerPort":80,"protocol":"TCP"}': { '.': {}, 'f:containerPort': {} } },
      },
    });
  });
});
