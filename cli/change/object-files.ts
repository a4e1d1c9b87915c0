import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { YAMLParseError } from 'yaml';
import { errorMessage } from '../../api/error-message.ts';
import type { KubernetesObject } from '../../api/object.ts';
import { CommandError, exitCodes } from '../command-line/exit-codes.ts';
import { parseKubectlYaml } from '../command-line/kubectl-yaml.ts';

/**
 * Reads Kubernetes objects as `kubectl apply -f` does.
 *
 * @param names files, directories (their .yaml, .yml and .json files, by name) or `-` for standard input.
 * @returns every document, in order; the items of a list in its place, with the type that the list gives them.
 * @throws CommandError (exit code 2) that names the file: it does not exist, is not YAML, or a document is not an object; also
 *   for a directory without such files, and for names with no object in any, as kubectl does.
 */
export async function readObjects(names: readonly string[]): Promise<KubernetesObject[]> {
  const objects: KubernetesObject[] = [];
  for (const name of names)
    for (const file of await filesOf(name)) objects.push(...(await readFileObjects(file)));
  if (objects.length === 0 && names.length > 0) {
    const where = names.map((name) => (name === '-' ? 'standard input' : name)).join(', ');
    throw new CommandError(`${where}: no objects found; expected at least one`, exitCodes.usage);
  }
  return objects;
}

async function filesOf(name: string): Promise<string[]> {
  if (name === '-') return [name];
  const stats = await stat(name).catch((cause: unknown) => {
    throw new CommandError(`${name}: no such file or directory`, exitCodes.usage, { cause });
  });
  if (!stats.isDirectory()) return [name];
  const entries = (await readdir(name)).filter((entry) => /\.(ya?ml|json)$/.test(entry)).sort();
  if (entries.length > 0) return entries.map((entry) => path.join(name, entry));
  throw new CommandError(
    `${name}: the directory has no .yaml, .yml or .json files; directories in it are not read`,
    exitCodes.usage,
  );
}

async function readFileObjects(file: string): Promise<KubernetesObject[]> {
  const source =
    file === '-'
      ? await text(process.stdin)
      : await readFile(file, 'utf8').catch((cause: unknown) => {
          const why = errorMessage(cause);
          throw new CommandError(`${file} can't be read: ${why}`, exitCodes.usage, { cause });
        });
  return valuesOf(source, file).flatMap((value) => {
    if (value === null) return [];
    const objects = objectsIn(value);
    if (objects.every(isObject)) return objects;
    throw new CommandError(`${file}: a document without apiVersion, kind or metadata.name`, exitCodes.usage);
  });
}

/** As kubectl takes lists apart: those of a kind, such as MachineConfigList, have items that may lack their own (apimachinery, unstructured). */
function objectsIn(value: unknown): readonly unknown[] {
  const { apiVersion, kind, items } = value as { apiVersion?: unknown; kind?: unknown; items?: unknown };
  if (typeof kind !== 'string' || !kind.endsWith('List') || !Array.isArray(items)) return [value];
  const type = kind === 'List' ? {} : { apiVersion, kind: kind.slice(0, -'List'.length) };
  return items.flatMap((item: unknown) =>
    typeof item === 'object' && item !== null ? objectsIn({ ...type, ...item }) : [item],
  );
}

/**
 * @returns the value of each document; null for an empty one.
 * @throws CommandError also for aliases that expand without limit or contain themselves, and for endless nesting.
 */
function valuesOf(source: string, file: string): unknown[] {
  const json = plainJson(source);
  if (json !== undefined) return [json];
  try {
    const values = parseKubectlYaml(source);
    // An object that contains itself can't be converted to JSON, which the API server requires.
    JSON.stringify(values);
    return values;
  } catch (cause) {
    if (cause instanceof YAMLParseError)
      throw new CommandError(`${file}: ${cause.message.trimEnd()}`, exitCodes.usage, { cause });
    const why = cause instanceof Error ? (cause.message.split('\n')[0] ?? '') : String(cause);
    throw new CommandError(`${file}: can't be read as objects: ${why}`, exitCodes.usage, { cause });
  }
}

/** Spaces that programs indent JSON with: none, jq's and kubectl's. */
const INDENTS = [0, 2, 4];

/**
 * Reads an object as JSON, which takes a tenth of the time and of the memory of reading it as YAML.
 *
 * @returns undefined for whatever JSON.stringify would write in another way: what is no JSON, and what has a key twice, of
 *   which JSON.parse takes the last.
 */
function plainJson(source: string): unknown {
  if (!source.startsWith('{')) return undefined;
  try {
    const value: unknown = JSON.parse(source);
    const text = source.trimEnd();
    return INDENTS.some((indent) => JSON.stringify(value, undefined, indent) === text) ? value : undefined;
  } catch {
    // The YAML parser says what is wrong, and where.
    return undefined;
  }
}

function isObject(value: unknown): value is KubernetesObject {
  const candidate = value as Partial<KubernetesObject> | undefined;
  return (
    typeof candidate?.apiVersion === 'string' &&
    typeof candidate.kind === 'string' &&
    typeof candidate.metadata?.name === 'string'
  );
}
