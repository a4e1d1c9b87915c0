/** Validation rules of definitions (CEL); the same file runs against a kube-apiserver. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Api, eventually, START_MS, startApi, uniqueName } from './api.ts';

let api: Api;
const group = 'validation.example.org';
const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const merge = { contentType: 'application/merge-patch+json' };

interface Schemas {
  readonly plural: string;
  readonly spec: object;
}

const definitionOf = ({ plural, spec }: Schemas) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.${group}` },
  spec: {
    group,
    scope: 'Cluster',
    names: { plural, singular: plural.slice(0, -1), kind: `K${plural}`, listKind: `K${plural}List` },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', properties: { spec } } },
      },
    ],
  },
});

const pathOf = (plural: string) => `/apis/${group}/v1/${plural}`;
const objectOf = (plural: string, name: string, spec: object) => ({
  apiVersion: `${group}/v1`,
  kind: `K${plural}`,
  metadata: { name },
  spec,
});

async function define(schemas: Schemas): Promise<void> {
  const created = await api.call('POST', definitions, definitionOf(schemas));
  expect([created.status, created.body.message]).toEqual([201, undefined]);
  await eventually(
    () => api.call('GET', pathOf(schemas.plural)),
    ({ status }) => status === 200,
  );
}

/** Replaces the schema, and waits until it is in force: `refused` is a spec that the old one took. */
async function tighten(schemas: Schemas, refused: object): Promise<void> {
  const path = `${definitions}/${schemas.plural}.${group}`;
  const changed = await api.call('PATCH', path, { spec: definitionOf(schemas).spec }, merge);
  expect([changed.status, changed.body.message]).toEqual([200, undefined]);
  await eventually(
    () =>
      api.call(
        'POST',
        `${pathOf(schemas.plural)}?dryRun=All`,
        objectOf(schemas.plural, uniqueName('x'), refused),
      ),
    ({ status }) => status === 422,
  );
}

beforeAll(async () => {
  api = await startApi();
}, START_MS);
afterAll(() => api.stop());

describe('the libraries of the rules', () => {
  const text = (rule: string) => ({
    type: 'string',
    maxLength: 100,
    'x-kubernetes-validations': [{ rule, message: `not so: ${rule.slice(0, 12)}` }],
  });
  const spec = {
    type: 'object',
    properties: {
      subdomain: text('!format.dns1123Subdomain().validate(self).hasValue()'),
      label: text('!format.dns1123Label().validate(self).hasValue()'),
      label1035: text('!format.dns1035Label().validate(self).hasValue()'),
      qualified: text('!format.qualifiedName().validate(self).hasValue()'),
      named: text("!format.named('labelValue').value().validate(self).hasValue()"),
      matched: text("matches(self, '^arn:(aws|aws-cn):iam::[0-9]{12}:role/.*$')"),
      member: text("self.matches('^[a-z]+$')"),
      found: text("self.find('[0-9]+') == '42' && self.findAll('[0-9]+').size() == 1"),
      replaced: text(
        "self.startsWith('*.') ? !format.dns1123Subdomain().validate(self.replace('*.', '', 1)).hasValue() : false",
      ),
      address: text('isIP(self) && ip(self).family() == 6'),
      network: text('isCIDR(self)'),
      link: text("isURL(self) && url(self).getScheme() == 'https' && url(self).getHostname() != 'localhost'"),
      amount: text("isQuantity(self) && quantity(self).compareTo(quantity('1Gi')) >= 0"),
    },
  };

  beforeAll(() => define({ plural: 'texts', spec }), START_MS);

  test.each([
    ['subdomain', 'a.example.com', 'A.example.com'],
    ['subdomain', 'a', 'a..b'],
    ['label', 'a-b', 'a.b'],
    ['label1035', 'a1', '1a'],
    ['qualified', 'example.com/Name', 'a/b/c'],
    ['named', 'x_y', '-x'],
    ['matched', 'arn:aws:iam::123456789012:role/x', 'arn:aws:iam::1:role/x'],
    ['member', 'abc', 'ab1'],
    ['found', 'a42b', '4 2'],
    ['replaced', '*.example.com', '*.*.com'],
    ['address', 'fe80::1', '10.0.0.1'],
    ['address', '::1', '::ffff:1.2.3.4'],
    ['network', '10.0.0.0/8', '10.0.0.0/33'],
    ['link', 'https://example.com:443/x?y=z', 'https://localhost/'],
    ['link', 'https://[::1]:80/', '../relative'],
    ['amount', '1.5Gi', '1G'],
    ['amount', '2e9', '200K'],
  ])('%s takes %s and not %s', async (field, right, wrong) => {
    const taken = await api.call(
      'POST',
      pathOf('texts'),
      objectOf('texts', uniqueName('t'), { [field]: right }),
    );
    expect([taken.status, taken.body.message]).toEqual([201, undefined]);
    const refused = await api.call(
      'POST',
      pathOf('texts'),
      objectOf('texts', uniqueName('t'), { [field]: wrong }),
    );
    expect(refused.status).toBe(422);
    expect(refused.body.details.causes[0].field).toBe(`spec.${field}`);
    expect(refused.body.message).toContain('not so');
  });

  test('that there are not are refused with the definition', async () => {
    const wrong = definitionOf({ plural: 'wrongs', spec: text('format.smile().validate(self).hasValue()') });
    const { status } = await api.call('POST', definitions, wrong);
    expect(status).toBe(422);
  });
});

describe('an update of what a newer schema refuses', () => {
  const properties = (strict: boolean) => ({
    code: { type: 'string', ...(strict ? { maxLength: 3 } : {}) },
    other: { type: 'string' },
    ruled: {
      type: 'object',
      properties: { a: { type: 'integer' }, b: { type: 'integer' } },
      ...(strict
        ? { 'x-kubernetes-validations': [{ rule: '!has(self.a) || self.a > 5', message: 'a is too small' }] }
        : {}),
    },
    frozen: {
      type: 'object',
      properties: { a: { type: 'integer' } },
      ...(strict
        ? {
            'x-kubernetes-validations': [
              { rule: 'self.a > 5 && oldSelf.a > 5', message: 'a is too small for a change' },
            ],
          }
        : {}),
    },
    parts: {
      type: 'array',
      maxItems: 9,
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
      items: {
        type: 'object',
        required: ['name'],
        properties: {
          name: { type: 'string' },
          size: { type: 'integer', ...(strict ? { minimum: 5 } : {}) },
        },
      },
    },
    list: {
      type: 'array',
      maxItems: 9,
      items: { type: 'integer', ...(strict ? { minimum: 5 } : {}) },
    },
    once: {
      type: 'array',
      maxItems: 9,
      'x-kubernetes-list-type': strict ? 'set' : 'atomic',
      items: { type: 'integer' },
    },
    needy: {
      type: 'object',
      properties: { a: { type: 'integer' }, b: { type: 'integer' } },
      ...(strict ? { required: ['b'] } : {}),
    },
  });
  const spec = (strict: boolean) => ({ type: 'object', properties: properties(strict) });
  const invalid = {
    code: 'abcdef',
    ruled: { a: 1 },
    parts: [
      { name: 'x', size: 1 },
      { name: 'y', size: 7 },
    ],
    list: [1, 7],
    once: [1, 1],
    needy: { a: 1 },
  };
  const cases: readonly [string, object, object, number][] = [
    ['leaves all of it as it was', invalid, { other: 'x' }, 200],
    ['changes the value that is too long', invalid, { code: 'abcdeg' }, 422],
    ['mends the value that is too long', invalid, { code: 'abc' }, 200],
    ['changes a neighbor within the object whose rule fails', invalid, { ruled: { b: 2 } }, 422],
    ['leaves what a rule about the change refuses', { frozen: { a: 1 } }, { other: 'x' }, 422],
    [
      'changes another item of a list-map, and moves the invalid one',
      invalid,
      {
        parts: [
          { name: 'y', size: 8 },
          { name: 'x', size: 1 },
        ],
      },
      200,
    ],
    ['changes the key of an invalid item of a list-map', invalid, { parts: [{ name: 'z', size: 1 }] }, 422],
    ['changes another item of a list without keys', invalid, { list: [1, 8] }, 422],
    ['changes a field of the object that lacks one', invalid, { needy: { a: 2 } }, 422],
    ['adds to a set that had an item twice before', invalid, { once: [1, 1, 2, 2] }, 200],
    ['makes a set have an item twice', { once: [1] }, { once: [1, 1] }, 422],
    ['adds what is invalid', { other: 'x' }, { code: 'abcdef' }, 422],
  ];

  const names = new Map<string, string>();
  beforeAll(async () => {
    await define({ plural: 'ratchets', spec: spec(false) });
    for (const [what, before] of cases) {
      const name = uniqueName('r');
      names.set(what, name);
      const created = await api.call('POST', pathOf('ratchets'), objectOf('ratchets', name, before));
      expect([created.status, created.body.message]).toEqual([201, undefined]);
    }
    await tighten({ plural: 'ratchets', spec: spec(true) }, { code: 'abcdef' });
  }, START_MS);

  test.each(cases)('%s', async (what, _, change, expected) => {
    const path = `${pathOf('ratchets')}/${names.get(what)}`;
    const { status, body } = await api.call('PATCH', path, { spec: change }, merge);
    expect([status, body.message?.slice(0, 200)]).toEqual([
      expected,
      expected === 200 ? undefined : expect.stringContaining('is invalid'),
    ]);
  });
});
