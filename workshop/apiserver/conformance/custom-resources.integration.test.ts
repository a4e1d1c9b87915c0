/** Custom resources as Kubernetes documents them; the same file runs against a kube-apiserver. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Api, eventually, START_MS, startApi, uniqueName } from './api.ts';

let api: Api;
const group = 'conformance.example.org';
const widgets = `/apis/${group}/v1/widgets`;

const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `widgets.${group}` },
  spec: {
    group,
    scope: 'Cluster',
    names: {
      plural: 'widgets',
      singular: 'widget',
      kind: 'Widget',
      listKind: 'WidgetList',
      shortNames: ['wg'],
    },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        additionalPrinterColumns: [
          { name: 'Size', type: 'integer', jsonPath: '.spec.size' },
          { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
        ],
        schema: {
          openAPIV3Schema: {
            type: 'object',
            required: ['spec'],
            properties: {
              spec: {
                type: 'object',
                required: ['size'],
                'x-kubernetes-validations': [
                  { rule: 'self.size >= self.least', message: 'size must not be below least' },
                  { rule: 'self.color == oldSelf.color', message: 'color is immutable' },
                ],
                properties: {
                  size: { type: 'integer', minimum: 1, maximum: 10 },
                  least: { type: 'integer', default: 1 },
                  color: { type: 'string', default: 'red', enum: ['red', 'blue'] },
                  code: { type: 'string', pattern: '^[a-z]+$', maxLength: 5 },
                  any: { 'x-kubernetes-int-or-string': true },
                  free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
                  parts: {
                    type: 'array',
                    maxItems: 3,
                    'x-kubernetes-list-type': 'map',
                    'x-kubernetes-list-map-keys': ['name'],
                    items: { type: 'object', required: ['name'], properties: { name: { type: 'string' } } },
                  },
                },
              },
              status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
            },
          },
        },
      },
    ],
  },
};

const widget = (name: string, spec: object) => ({
  apiVersion: `${group}/v1`,
  kind: 'Widget',
  metadata: { name },
  spec,
});

beforeAll(async () => {
  api = await startApi();
  const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  expect((await api.call('POST', definitions, definition)).status).toBe(201);
  await eventually(
    () => api.call('GET', `${definitions}/${definition.metadata.name}`),
    ({ body }) =>
      body.status?.conditions?.some(
        ({ type, status }: Record<string, string>) => type === 'Established' && status === 'True',
      ) === true,
  );
  // What is established is served a moment later.
  await eventually(
    () => api.call('GET', widgets),
    ({ status }) => status === 200,
  );
}, START_MS);
afterAll(() => api.stop());

describe('a custom resource', () => {
  test('gets defaults, loses unknown fields, and begins at generation 1', async () => {
    const { status, body } = await api.call(
      'POST',
      widgets,
      widget(uniqueName('w'), { size: 2, smile: 1, free: { x: 1 } }),
    );
    expect(status).toBe(201);
    expect(body.spec).toEqual({ size: 2, least: 1, color: 'red', free: { x: 1 } });
    expect(body.metadata.generation).toBe(1);
  });

  test.each([
    [
      'a value that is too small',
      { size: 0 },
      'spec.size',
      'spec.size in body should be greater than or equal to 1',
    ],
    [
      'a value that is too large',
      { size: 11 },
      'spec.size',
      'spec.size in body should be less than or equal to 10',
    ],
    ['a missing value', {}, 'spec.size', 'Required value'],
    ['another type', { size: 'x' }, 'spec.size', 'spec.size in body must be of type integer: "string"'],
    [
      'none of an enum',
      { size: 1, color: 'green' },
      'spec.color',
      'Unsupported value: "green": supported values: "red", "blue"',
    ],
    ['another pattern', { size: 1, code: 'A' }, 'spec.code', "spec.code in body should match '^[a-z]+$'"],
    ['too long a text', { size: 1, code: 'abcdef' }, 'spec.code', 'Too long: may not be more than 5 bytes'],
    [
      'too many items',
      { size: 1, parts: ['a', 'b', 'c', 'd'].map((name) => ({ name })) },
      'spec.parts',
      'Too many: 4: must have at most 3 items',
    ],
    [
      'a key twice',
      { size: 1, parts: [{ name: 'a' }, { name: 'a' }] },
      'spec.parts[1]',
      'Duplicate value: {"name":"a"}',
    ],
    ['a rule that does not hold', { size: 1, least: 2 }, 'spec', 'size must not be below least'],
  ])('with %s is invalid', async (_, spec, field, message) => {
    const { status, body } = await api.call('POST', widgets, widget('bad', spec));
    expect([status, body.reason]).toEqual([422, 'Invalid']);
    expect(body.message).toMatch(/^Widget\.conformance\.example\.org "bad" is invalid: /);
    const causes = body.details.causes.map(
      (cause: Record<string, string>) => `${cause['field']}: ${cause['message']}`,
    );
    expect(causes.join('\n')).toContain(message);
    expect(causes.some((cause: string) => cause.startsWith(`${field}: `))).toBe(true);
  });

  test('is held against its old self', async () => {
    const name = uniqueName('w');
    const { body } = await api.call('POST', widgets, widget(name, { size: 2 }));
    const changed = await api.call('PUT', `${widgets}/${name}`, {
      ...body,
      spec: { ...body.spec, color: 'blue' },
    });
    expect(changed.status).toBe(422);
    expect(changed.body.message).toContain('color is immutable');
  });

  test('counts changes of what is asked, not of its status or labels', async () => {
    const name = uniqueName('w');
    await api.call('POST', widgets, widget(name, { size: 2 }));
    const merge = { contentType: 'application/merge-patch+json' };
    const patch = async (path: string, body: object) => (await api.call('PATCH', path, body, merge)).body;
    const labelled = await patch(`${widgets}/${name}`, { metadata: { labels: { a: 'b' } } });
    expect(labelled.metadata.generation).toBe(1);
    const reported = await patch(`${widgets}/${name}/status`, { spec: { size: 9 }, status: { a: 1 } });
    expect([reported.metadata.generation, reported.spec.size, reported.status]).toEqual([1, 2, { a: 1 }]);
    const grown = await patch(`${widgets}/${name}`, { spec: { size: 3 }, status: { a: 2 } });
    expect([grown.metadata.generation, grown.status]).toEqual([2, { a: 1 }]);
  });

  test('must be replaced with its resourceVersion, and takes no strategic merge patch', async () => {
    const name = uniqueName('w');
    await api.call('POST', widgets, widget(name, { size: 2 }));
    const blind = await api.call('PUT', `${widgets}/${name}`, widget(name, { size: 3 }));
    expect(blind.status).toBe(422);
    expect(blind.body.message).toContain('metadata.resourceVersion: Invalid value');
    const contentType = 'application/strategic-merge-patch+json';
    expect((await api.call('PATCH', `${widgets}/${name}`, {}, { contentType })).status).toBe(415);
  });

  test('with an unknown field is refused where the client is strict', async () => {
    const path = `${widgets}?fieldValidation=Strict`;
    const { status, body } = await api.call('POST', path, widget('strict', { size: 1, smile: 1 }));
    expect(status).toBe(400);
    expect(body.message).toContain('unknown field "spec.smile"');
  });

  test('shows the columns of its definition', async () => {
    const name = uniqueName('w');
    await api.call('POST', widgets, widget(name, { size: 7 }));
    const status = { conditions: [{ type: 'Ready', status: 'True' }] };
    await api.call(
      'PATCH',
      `${widgets}/${name}/status`,
      { status },
      { contentType: 'application/merge-patch+json' },
    );
    const { body } = await api.call('GET', `${widgets}/${name}`, undefined, {
      accept: 'application/json;as=Table;v=v1;g=meta.k8s.io',
    });
    expect(body.columnDefinitions.map((column: { name: string }) => column.name)).toEqual([
      'Name',
      'Size',
      'Ready',
    ]);
    expect(body.rows[0].cells).toEqual([name, 7, 'True']);
  });

  test('is described for clients', async () => {
    const { body } = await api.call('GET', `/openapi/v3/apis/${group}/v1`);
    const schemas: Record<string, { properties?: Record<string, unknown> }> = body.components.schemas;
    const found = Object.entries(schemas).find(([name]) => name.endsWith('.Widget'))?.[1];
    expect(Object.keys(found?.properties ?? {}).sort()).toEqual([
      'apiVersion',
      'kind',
      'metadata',
      'spec',
      'status',
    ]);
  });
});

test('a definition under a name that is not its own is refused', async () => {
  const wrong = { ...definition, metadata: { name: 'others.example.org' } };
  const { status } = await api.call('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', wrong);
  expect(status).toBe(422);
});
