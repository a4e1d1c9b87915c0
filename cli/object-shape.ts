import { crdDefinitions } from '../api/crd-definitions.ts';
import { MachineConfigSpec, MachineConfigs } from '../api/machine-config.ts';
import type { KubernetesObject } from '../api/object.ts';

/** An object, and what is wrong with its shape: a line for each problem. */
export interface ShapedObject {
  readonly object: KubernetesObject;
  readonly problems: readonly string[];
}

/**
 * Looks at an object as the API server would before it stores it. The Ignition config of a MachineConfig is left to the
 * parser of Ignition, which says more.
 *
 * @returns the object as it would be stored: a null where a field can't be null is no value (apiextensions, "Defaulting
 *   and Nullable"). Kinds that Shale does not bring are taken as they are.
 */
export function shapeOf(object: KubernetesObject): ShapedObject {
  const definition = crdDefinitions.find(
    ({ kind }) => kind.kind === object.kind && object.apiVersion === `${kind.group}/${kind.version}`,
  );
  if (definition === undefined) return { object, problems: [] };
  const subject = `${object.kind} ${object.metadata.name}`;
  const labels = hasStringLabels(object) ? [] : [`${subject}: metadata.labels: expected strings by name`];
  const given = (object as { readonly spec?: unknown }).spec ?? undefined;
  if (given === undefined) {
    const missing = definition.specRequired ? [`${subject}: spec: is missing; expected an object`] : [];
    return { object, problems: [...labels, ...missing] };
  }
  const isConfig = definition.kind === MachineConfigs;
  const schema = isConfig ? MachineConfigSpec.omit({ config: true }) : definition.spec;
  const spec = withoutNulls(given, isConfig ? 'config' : undefined);
  const issues = schema.safeParse(spec).error?.issues ?? [];
  const problems = issues.map(
    ({ path, message }) => `${subject}: ${['spec', ...path].join('.')}: ${message}`,
  );
  return { object: { ...object, spec } as KubernetesObject, problems: [...labels, ...problems] };
}

/** @param opaque name of a field that is left as it is. */
function withoutNulls(value: unknown, opaque?: string): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutNulls(item));
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).filter(([, field]) => field !== null);
  return Object.fromEntries(
    fields.map(([name, field]) => [name, name === opaque ? field : withoutNulls(field)]),
  );
}

function hasStringLabels({ metadata }: KubernetesObject): boolean {
  const labels: unknown = metadata.labels ?? {};
  return (
    typeof labels === 'object' && Object.values(labels as object).every((label) => typeof label === 'string')
  );
}
