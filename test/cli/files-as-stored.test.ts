import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { crdOf } from '../../api/crd.ts';
import { type CrdDefinition, crdDefinitions } from '../../api/crd-definitions.ts';
import { apiVersionOf, type KubernetesObject } from '../../api/object.ts';
import { shapeOf } from '../../predict/objects/object-shape.ts';
import { at, type JsonObject, objectsAt } from '../../workshop/apiserver/json.ts';
import { compileSchema } from '../../workshop/apiserver/schema/compiled-schema.ts';
import { parseSchema, type StructuralSchema } from '../../workshop/apiserver/schema/structural-schema.ts';

/** Of 300 specs, so many at least are valid: a property that judges nothing proves nothing. */
const LEAST = 20;

/** Values that a schema's types allow, in which any field may be missing, null or one too many. */
function valuesOf(schema: StructuralSchema): fc.Arbitrary<unknown> {
  const { limits } = schema;
  if (limits.enum !== undefined) return fc.constantFrom(...limits.enum);
  if (schema.intOrString) return fc.constantFrom(0, 1, '10%', '50%');
  switch (schema.type) {
    case 'object':
      return objectsOf(schema);
    case 'array':
      return schema.items === undefined
        ? fc.constant([])
        : fc.array(valuesOf(schema.items), { minLength: limits.minItems ?? 0, maxLength: 2 });
    case 'string':
      return textsOf(schema);
    case 'integer':
    case 'number':
      return fc.constantFrom(limits.minimum ?? 0, 1, 2);
    case 'boolean':
      return fc.boolean();
    default:
      return fc.constantFrom('a', 1);
  }
}

const TEXTS = ['worker', 'a', '1h', 'a.service', 'r.example.org/os/worker', 'r.example.org/os/worker:1'];

function textsOf({ limits }: StructuralSchema): fc.Arbitrary<string> {
  if (limits.format === 'date-time') return fc.constant('2026-01-01T00:00:00Z');
  if (limits.format === 'byte') return fc.constant('YQ==');
  const pattern = limits.pattern?.regExp;
  if (pattern === undefined) return fc.constantFrom(...TEXTS);
  const valid = TEXTS.filter((text) => pattern.test(text));
  const random = fc.stringMatching(pattern, { size: '-1' });
  return valid.length === 0 ? random : fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...valid) }, random);
}

function objectsOf(schema: StructuralSchema): fc.Arbitrary<unknown> {
  const { limits, additional } = schema;
  if (additional !== undefined) return fc.dictionary(fc.constantFrom('a', 'b'), valuesOf(additional));
  const fields = [...schema.properties].map(([name, inner]) => {
    const value = valuesOf(inner);
    const isOpen = inner.type === 'object' && inner.preserveUnknownFields;
    const mayBeNull = !limits.required.includes(name) && !isOpen && inner.type !== undefined;
    return [name, mayBeNull ? fc.oneof({ weight: 6, arbitrary: value }, fc.constant(null)) : value] as const;
  });
  return fc.record(Object.fromEntries(fields), { requiredKeys: [...limits.required] });
}

/** Every reader takes null for a missing field, so it makes no difference where one of the two keeps it. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutNulls(item));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, inner]) => (inner === null ? [] : [[key, withoutNulls(inner)]])),
  );
}

function stored(definition: CrdDefinition) {
  const [version] = objectsAt(crdOf(definition) as unknown as JsonObject, 'spec', 'versions');
  const openAPI = at(version, 'schema', 'openAPIV3Schema') as JsonObject;
  return { schema: compileSchema(openAPI), spec: parseSchema(openAPI).properties.get('spec') };
}

/** Of these few are accepted: each kind of trust forbids the settings of the others. */
const RUNS: Readonly<Record<string, number>> = { ClusterImagePolicy: 3000, ImagePolicy: 3000 };

describe.each(crdDefinitions.map((definition) => [definition.kind.kind, definition] as const))(
  'a %s in a file',
  (kind, definition) => {
    const { schema, spec } = stored(definition);
    if (spec === undefined) return;
    test('is what the API server would store of it', () => {
      let accepted = 0;
      fc.assert(
        fc.property(valuesOf(spec), (given) => {
          const object = {
            apiVersion: apiVersionOf(definition.kind),
            kind,
            metadata: { name: definition.fixedName ?? 'worker' },
            spec: given,
          };
          const { object: kept, problems } = schema.admit(structuredClone(object) as JsonObject);
          const shaped = shapeOf(object as unknown as KubernetesObject);
          const isRepeated = problems.some(({ message }) => message.startsWith('Duplicate value'));
          if (isRepeated) expect(shaped.problems).not.toEqual([]);
          if (problems.length > 0) return;
          accepted += 1;
          expect(shaped.problems).toEqual([]);
          expect(withoutNulls(at(shaped.object as unknown as JsonObject, 'spec'))).toEqual(
            withoutNulls(at(kept, 'spec')),
          );
        }),
        { numRuns: RUNS[kind] ?? 300, seed: 1 },
      );
      expect(accepted).toBeGreaterThan(LEAST);
    });
  },
);
