import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { at, type JsonObject, objectsAt, stringAt } from '../../workshop/apiserver/json.ts';
import { compileSchema } from '../../workshop/apiserver/schema/compiled-schema.ts';
import { kstatus } from '../fixtures/kstatus.ts';

const root = join(import.meta.dirname, '../..');

function readObjects(dir: string): readonly JsonObject[] {
  return readdirSync(join(root, dir))
    .filter((file) => file.endsWith('.yaml') && file !== 'kustomization.yaml')
    .flatMap((file) => parseAllDocuments(readFileSync(join(root, dir, file), 'utf8'), { version: '1.1' }))
    .map((document) => document.toJS() as JsonObject);
}

const definitions = new Map(
  readObjects('manifests/crds').map((definition) => [
    stringAt(definition, 'spec', 'names', 'kind') ?? '',
    definition,
  ]),
);

function schemaOf(kind: string): JsonObject {
  const [version] = objectsAt(definitions.get(kind), 'spec', 'versions');
  return at(version, 'schema', 'openAPIV3Schema') as JsonObject;
}

test.each([...definitions.keys()])('%s compiles', (kind) => {
  expect(() => compileSchema(schemaOf(kind))).not.toThrow();
});

/** @returns where a value holds an object of nothing. */
function emptyObjects(value: unknown, where: string): readonly string[] {
  if (typeof value !== 'object' || value === null) return [];
  const entries = Object.entries(value);
  if (entries.length === 0 && !Array.isArray(value)) return [where];
  return entries.flatMap(([key, inner]) => emptyObjects(inner, `${where}.${key}`));
}

// An API server does not store an empty map of properties, so kubectl would find a difference at each apply.
test.each([...definitions.keys()])('the schema of %s has no part that an API server leaves out', (kind) => {
  expect(emptyObjects(schemaOf(kind), kind)).toEqual([]);
});

test.each(
  readObjects('examples')
    .filter((object) => definitions.has(String(object['kind'])))
    .map((object) => [`${object['kind']} ${stringAt(object, 'metadata', 'name')}`, object] as const),
)('the example %s is valid', (_, object) => {
  const admitted = compileSchema(schemaOf(String(object['kind']))).admit(object);
  expect(admitted.problems).toEqual([]);
  expect(admitted.object).toMatchObject(object);
});

const reporting = [...definitions.keys()].filter(
  (kind) => at(schemaOf(kind), 'properties', 'status') !== undefined,
);

// Without a condition of readiness kstatus takes every object for what it should be.
test.each(reporting)('a %s that nothing has reported on is in progress', (kind) => {
  const definition = definitions.get(kind);
  const object = {
    apiVersion: `${stringAt(definition, 'spec', 'group')}/v1`,
    kind,
    metadata: { name: 'cluster', generation: 1 },
    spec: {},
  };
  const { status } = compileSchema(schemaOf(kind)).admit(object).object;
  expect(status).toMatchObject({ conditions: [{ type: 'Ready', status: 'Unknown' }] });
  expect(kstatus({ ...object, status })).toBe('InProgress');
  expect(
    compileSchema(at(schemaOf(kind), 'properties', 'status') as JsonObject).admit(status as JsonObject),
  ).toEqual({
    object: status,
    problems: [],
  });
});

/** @returns the fields below a schema that `kubectl explain` has no words for. */
function undescribed(schema: JsonObject, where: string): readonly string[] {
  const properties = (schema['properties'] ?? {}) as JsonObject;
  const items = schema['items'] as JsonObject | undefined;
  return [
    ...(typeof schema['description'] === 'string' ? [] : [where]),
    ...Object.entries(properties).flatMap(([name, field]) =>
      undescribed(field as JsonObject, `${where}.${name}`),
    ),
    ...(items === undefined ? [] : undescribed(items, `${where}[]`)),
  ];
}

test('every field of the config of a MachineConfig is described', () => {
  const config = at(schemaOf('MachineConfig'), 'properties', 'spec', 'properties', 'config') as JsonObject;
  expect(undescribed(config, 'spec.config')).toEqual([]);
});

/** @returns the columns of a kind, `-o wide` only those with an asterisk. */
function columnsOf(kind: string): readonly string[] {
  const [version] = objectsAt(definitions.get(kind), 'spec', 'versions');
  return objectsAt(version, 'additionalPrinterColumns').map(
    (column) => `${stringAt(column, 'name')}${column['priority'] === 1 ? '*' : ''}`,
  );
}

test.each([
  ['MachineConfigPool', ['Paused', 'Message*']],
  ['MachineConfigNode', ['Actions*', 'Grant*', 'Message*']],
  ['MachineOSBuild', ['Started*', 'Attempts*', 'Message*']],
])('kubectl shows of a %s what it waits for', (kind, expected) => {
  expect(columnsOf(kind)).toEqual(expect.arrayContaining(expected));
});

test('a MachineConfiguration with None beside another action is refused', () => {
  const policy = { path: '/etc/a', actions: [{ type: 'None' }, { type: 'Drain' }] };
  const { problems } = compileSchema(schemaOf('MachineConfiguration')).admit({
    apiVersion: 'operator.openshift.io/v1',
    kind: 'MachineConfiguration',
    metadata: { name: 'cluster' },
    spec: { nodeDisruptionPolicy: { files: [policy] } },
  });
  expect(problems).toHaveLength(1);
  expect(problems[0]?.field).toBe('spec.nodeDisruptionPolicy.files[0].actions');
});

/** What an object's update of its status is refused for; of openshift/api's tests of these kinds. */
function statusProblems(kind: string, before: JsonObject, after: JsonObject): readonly string[] {
  const [version] = objectsAt(definitions.get(kind), 'spec', 'versions');
  const status = at(version, 'schema', 'openAPIV3Schema', 'properties', 'status') as JsonObject;
  const schema = compileSchema({ type: 'object', properties: { status } });
  return schema
    .admit({ status: after }, { status: before })
    .problems.map(({ field, message }) => `${field}: ${message}`);
}

const DIGEST = `sha256:${'a'.repeat(64)}`;

describe('an Image', () => {
  const problemsOf = (registrySources: JsonObject) =>
    compileSchema(schemaOf('Image'))
      .admit({
        apiVersion: 'config.openshift.io/v1',
        kind: 'Image',
        metadata: { name: 'cluster' },
        spec: { registrySources },
      })
      .problems.map(({ field }) => field);
  const LISTS = ['allowedRegistries', 'blockedRegistries', 'insecureRegistries'] as const;

  test.each([
    'example.com',
    'example.com:5000',
    'example.com/a/b-c__d.e',
    'Example.COM',
    'localhost:5000/a',
    '10.0.0.1',
    '*.example.com',
    `${'a'.repeat(63)}.example.com`,
  ])('takes the registry %s', (registry) => {
    expect(LISTS.flatMap((list) => problemsOf({ [list]: [registry] }))).toEqual([]);
  });

  test.each([
    '',
    'registry.io/myrepo:latest',
    `registry.io/myrepo@${DIGEST}`,
    'registry.io/myrepo@sha256:abc123',
    '*.example.com:5000',
    '*.example.com/a',
    '*',
    'a.*.com',
    '-a.com',
    'a-.com',
    'a..com',
    'https://example.com',
    'example.com/',
    'example.com/A',
    'example.com/a--_b',
    'a b',
    'a'.repeat(257),
  ])('refuses the registry "%.40s"', (registry) => {
    expect(LISTS.map((list) => problemsOf({ [list]: [registry] })[0])).toEqual(
      LISTS.map((list) => `spec.registrySources.${list}[0]`),
    );
  });

  test('allows registries or blocks some', () => {
    expect(problemsOf({ allowedRegistries: ['a.org'], blockedRegistries: ['b.org'] })).toEqual([
      'spec.registrySources',
    ]);
    expect(problemsOf({ allowedRegistries: ['a.org'], insecureRegistries: ['b.org'] })).toEqual([]);
  });
});

test('the counts of a pool fit together, and its generation does not go back', () => {
  const counts = (more: JsonObject) => ({
    poolSynchronizersStatus: [
      {
        poolSynchronizerType: 'PinnedImageSets',
        machineCount: 3,
        updatedMachineCount: 1,
        readyMachineCount: 1,
        availableMachineCount: 2,
        unavailableMachineCount: 1,
        observedGeneration: 2,
        ...more,
      },
    ],
  });
  const problemsOf = (more: JsonObject) => statusProblems('MachineConfigPool', counts({}), counts(more));
  expect(problemsOf({ updatedMachineCount: 3 })).toEqual([]);
  expect(problemsOf({ observedGeneration: 0 })).toEqual([]);
  expect(problemsOf({ updatedMachineCount: 4 })[0]).toContain('machineCount must be greater than or equal');
  expect(problemsOf({ readyMachineCount: 3 })[0]).toContain('availableMachineCount must be greater');
  expect(problemsOf({ observedGeneration: 1 })[0]).toContain('must not move backwards except to zero');
});

test('a PinnedImageSet has images by digest alone, none of which is an option', () => {
  const problemsOf = (name: string) =>
    compileSchema(schemaOf('PinnedImageSet'))
      .admit({
        apiVersion: 'machineconfiguration.openshift.io/v1',
        kind: 'PinnedImageSet',
        metadata: { name: 'a' },
        spec: { pinnedImages: [{ name }] },
      })
      .problems.map(({ field }) => field);
  for (const right of ['example.com/a', 'example.com:5000/a/b/c', 'localhost/a'])
    expect(problemsOf(`${right}@${DIGEST}`)).toEqual([]);
  for (const wrong of [`--help/a@${DIGEST}`, 'example.com/a:1', `a@${DIGEST}`, `example.com/a b@${DIGEST}`])
    expect(problemsOf(wrong)).toEqual(['spec.pinnedImages[0].name']);
});

test('a ContainerRuntimeConfig names its stores by absolute paths, each once', () => {
  const LISTS = ['additionalLayerStores', 'additionalImageStores', 'additionalArtifactStores'] as const;
  const problemsOf = (list: string, ...paths: string[]) =>
    compileSchema(schemaOf('ContainerRuntimeConfig'))
      .admit({
        apiVersion: 'machineconfiguration.openshift.io/v1',
        kind: 'ContainerRuntimeConfig',
        metadata: { name: 'a' },
        spec: { containerRuntimeConfig: { [list]: paths.map((path) => ({ path })) } },
      })
      .problems.map(({ field, message }) => `${field}: ${message}`);
  for (const list of LISTS) {
    const field = `spec.containerRuntimeConfig.${list}`;
    expect(problemsOf(list, '/var/lib/stargz-store', '/opt/layer_store-v1.0', '/mnt/')).toEqual([]);
    for (const wrong of [
      '',
      '/',
      'var/lib/a',
      '/var/lib/a b',
      '/var/lib/a@b',
      '/var//a',
      `/${'a'.repeat(256)}`,
    ])
      expect(problemsOf(list, wrong)[0]).toContain(`${field}[0].path`);
    expect(problemsOf(list, '/a', '/a')[0]).toContain(`${list} must not contain duplicate paths`);
    expect(problemsOf(list)[0]).toContain(field);
  }
});

test('the groups of a KubeletConfig are known ones, and at least one', () => {
  const problemsOf = (...groups: string[]) =>
    compileSchema(schemaOf('KubeletConfig'))
      .admit({
        apiVersion: 'machineconfiguration.openshift.io/v1',
        kind: 'KubeletConfig',
        metadata: { name: 'a' },
        spec: { tlsSecurityProfile: { type: 'Custom', custom: { groups } } },
      })
      .problems.map(({ field }) => field);
  const field = 'spec.tlsSecurityProfile.custom.groups';
  expect(problemsOf('X25519', 'SecP384r1MLKEM1024')).toEqual([]);
  expect(problemsOf()).toEqual([field]);
  expect(problemsOf('InvalidCurve')).toEqual([`${field}[0]`]);
});

test("a node's PinnedImageSets count their generations forwards", () => {
  const states = (state: JsonObject) => ({ pinnedImageSets: [{ name: 'a', ...state }] });
  const before = states({ desiredGeneration: 3, currentGeneration: 2 });
  const problemsOf = (state: JsonObject) => statusProblems('MachineConfigNode', before, states(state));
  expect(problemsOf({ desiredGeneration: 4, currentGeneration: 4 })).toEqual([]);
  expect(problemsOf({ desiredGeneration: 3, currentGeneration: 4 })[0]).toContain('current generation');
  expect(problemsOf({ desiredGeneration: 2 })[0]).toContain('must not decrease');
  expect(problemsOf({ desiredGeneration: 3, lastFailedGeneration: 3 })[0]).toContain('error must be defined');
});

test('a build names its Job if it is a Job', () => {
  const job = { group: 'batch', resource: 'jobs', namespace: 'a', name: 'b' };
  const problemsOf = (builder: JsonObject) => statusProblems('MachineOSBuild', {}, { builder });
  expect(problemsOf({ imageBuilderType: 'Append' })).toEqual([]);
  expect(problemsOf({ imageBuilderType: 'Job', job })).toEqual([]);
  expect(problemsOf({ imageBuilderType: 'Job' })[0]).toContain('job is required');
  expect(problemsOf({ imageBuilderType: 'Append', job })[0]).toContain('forbidden otherwise');
});
