import { crdOf } from '../../api/crd.ts';
import { crdDefinitions } from '../../api/crd-definitions.ts';
import type { CustomResourceDefinition } from '../../api/kubernetes.ts';
import { conditionIsTrue } from '../../cluster/conditions.ts';
import { type Finding, findings } from './finding.ts';

/** Fields named in a finding; the rest is counted. */
const NAMED_FIELDS = 5;

/**
 * Compares the cluster's CustomResourceDefinitions with those of this version.
 *
 * @param present every definition that the cluster has.
 */
export function judgeDefinitions(present: readonly CustomResourceDefinition[]): Finding[] {
  const { ok, failure } = findings('CRDs');
  const mend = 'kubectl apply -k manifests/crds, from the version that is running';
  const wrong = crdDefinitions.flatMap((definition) => {
    const wanted = crdOf(definition);
    const { name } = wanted.metadata;
    const found = present.find(({ metadata }) => metadata.name === name);
    if (found === undefined) return [failure(`${name} is missing`, mend)];
    if (!conditionIsTrue(found.status?.conditions, 'Established')) {
      return [failure(`${name} is not Established`, `run kubectl describe crd ${name} to see why`)];
    }
    const missing = missingFields(schemaOf(wanted.spec), schemaOf(found.spec));
    if (missing.length === 0) return [];
    const more = missing.length - NAMED_FIELDS;
    const named = `${missing.slice(0, NAMED_FIELDS).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
    return [failure(`${name} belongs to another version: it does not have ${named}`, mend)];
  });
  return wrong.length === 0
    ? [ok(`all ${crdDefinitions.length} are installed and belong to this version`)]
    : wrong;
}

/** @returns whether Shale's own objects can be read at all. */
export function areServed(present: readonly CustomResourceDefinition[]): boolean {
  const names = new Set(present.map(({ metadata }) => metadata.name));
  return crdDefinitions.every((definition) => names.has(crdOf(definition).metadata.name));
}

type Schema = Readonly<Record<string, unknown>>;

function schemaOf(spec: Readonly<Record<string, unknown>>): Schema {
  const versions = (spec['versions'] ?? []) as readonly {
    readonly storage?: boolean;
    readonly schema?: { readonly openAPIV3Schema?: Schema };
  }[];
  return versions.find(({ storage }) => storage === true)?.schema?.openAPIV3Schema ?? {};
}

/** What one schema has as properties and the other has not, by path. The API server prunes what it does not know. */
function missingFields(wanted: Schema, found: Schema, path = ''): string[] {
  if (found['x-kubernetes-preserve-unknown-fields'] === true) return [];
  const properties = Object.entries((wanted['properties'] ?? {}) as Record<string, Schema>);
  const known = (found['properties'] ?? {}) as Record<string, Schema>;
  const own = properties.flatMap(([name, schema]) => {
    const at = path === '' ? name : `${path}.${name}`;
    const other = known[name];
    return other === undefined ? [at] : missingFields(schema, other, at);
  });
  const items = wanted['items'] as Schema | undefined;
  return items === undefined
    ? own
    : [...own, ...missingFields(items, (found['items'] ?? {}) as Schema, `${path}[]`)];
}
