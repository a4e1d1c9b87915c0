import { expect, test } from 'vitest';
import { crdOf } from '../api/crd.ts';
import { crdDefinitions } from '../api/crd-definitions.ts';

const RULES = 'x-kubernetes-validations';

interface Schema {
  readonly items?: Schema;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly maxProperties?: number;
  readonly [RULES]?: readonly unknown[];
}

/** @returns the paths of lists and maps whose values have rules, and which may have any number of them. */
function unlimited(schema: Schema, path: string): readonly string[] {
  const { items, maxItems, properties = {}, additionalProperties, maxProperties } = schema;
  const values = typeof additionalProperties === 'object' ? additionalProperties : undefined;
  return [
    ...(items !== undefined && maxItems === undefined && hasRules(items) ? [path] : []),
    ...(values !== undefined && maxProperties === undefined && hasRules(values) ? [path] : []),
    ...Object.entries(properties).flatMap(([name, each]) => unlimited(each, `${path}.${name}`)),
    ...(items === undefined ? [] : unlimited(items, `${path}[]`)),
    ...(values === undefined ? [] : unlimited(values, `${path}{}`)),
  ];
}

function hasRules(schema: Schema): boolean {
  return JSON.stringify(schema).includes(`"${RULES}"`);
}

// kube-apiserver refuses a definition whose rules might cost too much, by how many values there may be (Kubernetes,
// "CustomResourceDefinitions", "Resource use by validation functions"). The sandbox's API server doesn't estimate it.
test.each(crdDefinitions.map((definition) => [definition.kind.kind, definition] as const))(
  'lists of a %s whose values have rules are limited',
  (_kind, definition) => {
    const versions = crdOf(definition).spec.versions as readonly {
      readonly schema: { readonly openAPIV3Schema: Schema };
    }[];
    const found = versions.flatMap(({ schema }) => unlimited(schema.openAPIV3Schema, ''));
    expect(found).toEqual([]);
  },
);
