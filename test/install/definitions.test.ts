import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { at, type JsonObject, objectsAt, stringAt } from '../../workshop/apiserver/json.ts';
import { compileSchema } from '../../workshop/apiserver/schema/compiled-schema.ts';

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

test.each(
  readObjects('examples')
    .filter((object) => definitions.has(String(object['kind'])))
    .map((object) => [`${object['kind']} ${stringAt(object, 'metadata', 'name')}`, object] as const),
)('the example %s is valid', (_, object) => {
  const admitted = compileSchema(schemaOf(String(object['kind']))).admit(object);
  expect(admitted.problems).toEqual([]);
  expect(admitted.object).toMatchObject(object);
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
