import { annotations } from '../../api/names.ts';
import type { KubernetesObject } from '../../api/object.ts';

/** kubectl apply and shale try store a whole object here, including its values. */
const WHOLE_OBJECTS: ReadonlySet<string> = new Set([
  'kubectl.kubernetes.io/last-applied-configuration',
  annotations.try,
]);

/** Fields of a MachineConfig's Ignition config with contents: any file may be a key or a pull secret. */
const CONTENT_FIELDS: ReadonlySet<string> = new Set([
  'source',
  'contents',
  'passwordHash',
  'httpHeaders',
  'inline',
]);

/**
 * Removes secrets from an object. The keys of Secrets remain; the paths, units, modes and kernel arguments of
 * MachineConfigs; the names of pods' environment variables.
 */
export function redact(object: KubernetesObject): KubernetesObject {
  const bare = withoutNoise(object);
  switch (object.kind) {
    case 'Secret':
      return mapFields(bare, (name, value) =>
        name === 'data' || name === 'stringData' ? valuesLeftOut(value) : value,
      );
    case 'MachineConfig':
      return mapFields(bare, (name, value) => (name === 'spec' ? withoutContents(value) : value));
    case 'Pod':
    case 'Deployment':
    case 'DaemonSet':
      return mapFields(bare, (name, value) => (name === 'spec' ? withoutVariables(value) : value));
    default:
      return bare;
  }
}

function withoutNoise(object: KubernetesObject): KubernetesObject {
  const {
    managedFields: _,
    annotations: all,
    ...metadata
  } = object.metadata as KubernetesObject['metadata'] & {
    readonly managedFields?: unknown;
  };
  const kept = Object.entries(all ?? {}).filter(([name]) => !WHOLE_OBJECTS.has(name));
  return {
    ...object,
    metadata: { ...metadata, ...(kept.length === 0 ? {} : { annotations: Object.fromEntries(kept) }) },
  };
}

function mapFields(
  object: KubernetesObject,
  map: (name: string, value: unknown) => unknown,
): KubernetesObject {
  const fields = Object.entries(object).map(([name, value]) => [name, map(name, value)] as const);
  return Object.fromEntries(fields) as unknown as KubernetesObject;
}

function leftOut(value: unknown): string {
  return `(omitted: ${typeof value === 'string' ? value.length : JSON.stringify(value).length} characters)`;
}

function valuesLeftOut(value: unknown): unknown {
  return Object.fromEntries(Object.entries(value ?? {}).map(([key, secret]) => [key, leftOut(secret)]));
}

/** The contents of a file are an object with a `source`; those of a unit are a string. */
function withoutContents(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutContents);
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).map(([name, field]: [string, unknown]) => {
    const holdsText = CONTENT_FIELDS.has(name) && (typeof field !== 'object' || name === 'httpHeaders');
    return [name, holdsText && field !== null ? leftOut(field) : withoutContents(field)] as const;
  });
  return Object.fromEntries(fields);
}

function withoutVariables(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutVariables);
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).map(([name, field]: [string, unknown]) => {
    if (name !== 'env' || !Array.isArray(field)) return [name, withoutVariables(field)] as const;
    const variables = (field as readonly { readonly value?: unknown }[]).map((variable) =>
      variable.value === undefined ? variable : { ...variable, value: leftOut(variable.value) },
    );
    return [name, variables] as const;
  });
  return Object.fromEntries(fields);
}
