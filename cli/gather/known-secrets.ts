import type { KubernetesObject } from '../../api/object.ts';

/** Shorter values are in every text by chance. */
const SHORTEST = 8;
const LONGEST = 1024;

/** What a name in the list of fields means: a value below it is a secret wherever it appears. */
const SECRET_FIELDS: Readonly<Record<string, readonly string[]>> = {
  MachineConfig: ['passwordHash', 'httpHeaders', 'custom', 'httpProxy', 'httpsProxy'],
  MachineOSConfig: ['buildArguments'],
};

/**
 * @returns values that objects say are secrets, the longest first: a build prints its arguments, and a program that
 *   can't use its password says which. Contents of files aren't among them.
 */
export function knownSecrets(objects: readonly KubernetesObject[]): readonly string[] {
  const values = objects.flatMap((object) =>
    object.kind === 'Secret' ? secretData(object) : secretsBelow(object, SECRET_FIELDS[object.kind] ?? []),
  );
  const isUsable = (value: string) =>
    value.length >= SHORTEST && value.length <= LONGEST && !/[\r\n]/.test(value);
  return [...new Set(values.map((value) => value.trim()).filter(isUsable))].sort(
    (a, b) => b.length - a.length,
  );
}

/** Values as they are and decoded; those of a pull secret also one by one. */
function secretData(object: KubernetesObject): string[] {
  const { data = {} } = object as { readonly data?: Readonly<Record<string, unknown>> };
  return Object.values(data).flatMap((value) => {
    const encoded = String(value);
    const decoded = Buffer.from(encoded, 'base64').toString('utf8');
    return [encoded, decoded, ...leavesOf(parsed(decoded))];
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function secretsBelow(value: unknown, fields: readonly string[]): string[] {
  if (fields.length === 0 || typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, field]) =>
    // The names of arguments and headers are no secrets.
    fields.includes(name) ? leavesOf(field, 'name') : secretsBelow(field, fields),
  );
}

/** @param except the field that is left out, wherever it is. */
function leavesOf(value: unknown, except?: string): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, field]) => (name === except ? [] : leavesOf(field, except)));
}
