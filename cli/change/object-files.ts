import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { YAMLParseError } from 'yaml';
import { fileErrorMessage } from '../../api/error-message.ts';
import type { KubernetesObject } from '../../api/object.ts';
import { CommandError, UsageError } from '../command-line/exit-codes.ts';
import { parseKubectlYaml } from '../command-line/kubectl-yaml.ts';

interface ReadDocuments {
  readonly objects: readonly PlacedObject[];
  /** Of the documents that are not objects, each with its place. */
  readonly problems: readonly CommandError[];
}

interface PlacedObject {
  readonly object: KubernetesObject;
  /** The file and the number of the document in it, such as `a.yaml: document 2`. */
  readonly place: string;
}

/**
 * Reads Kubernetes objects as `kubectl apply -f` does.
 *
 * @param names files, directories (their .yaml, .yml and .json files, by name) or `-` for standard input.
 * @returns every document, in order; the items of a list in its place, with the type that the list gives them.
 * @throws CommandError (exit code 2) that names each document that is not YAML or not an object; also for a file that
 *   does not exist, a directory without such files, and names with no object in any, as kubectl does.
 */
export async function readObjects(names: readonly string[]): Promise<KubernetesObject[]> {
  const { objects, problems } = await readDocuments(names);
  if (problems.length > 0) {
    const message = problems.map((problem) => problem.message).join('\n');
    throw new UsageError(message, { cause: new AggregateError(problems) });
  }
  return objects.map(({ object }) => object);
}

/**
 * Reads the same for a command that judges each document, whatever the others are.
 *
 * @throws CommandError (exit code 2) for a file that does not exist, a directory without such files, and names with no
 *   document in any.
 */
export async function readDocuments(names: readonly string[]): Promise<ReadDocuments> {
  const objects: PlacedObject[] = [];
  const problems: CommandError[] = [];
  for (const name of names) {
    for (const file of await filesOf(name)) {
      const source = await sourceOf(file);
      const where = shownName(file);
      collecting(problems, where, () => {
        for (const [index, read] of documentsOf(source).entries()) {
          const place = `${where}: document ${index + 1}`;
          collecting(problems, place, () => objects.push(...objectsOf(read(), place)));
        }
      });
    }
  }
  if (objects.length + problems.length === 0 && names.length > 0) {
    const where = names.map(shownName).join(', ');
    throw new UsageError(`${where}: no objects found; expected at least one`);
  }
  return { objects, problems };
}

function shownName(file: string): string {
  return file === '-' ? 'standard input' : file;
}

async function filesOf(name: string): Promise<string[]> {
  if (name === '-') return [name];
  const stats = await stat(name).catch((cause: unknown) => {
    throw new UsageError(`${name}: no such file or directory`, { cause });
  });
  if (!stats.isDirectory()) return [name];
  const entries = (await readdir(name)).filter((entry) => /\.(ya?ml|json)$/.test(entry)).sort();
  if (entries.length > 0) return entries.map((entry) => path.join(name, entry));
  throw new UsageError(
    `${name}: the directory has no .yaml, .yml or .json files; directories in it are not read`,
  );
}

/** What was read of standard input, which can be read once: a plan for several clusters reads the change for each. */
const inputs = new WeakMap<typeof process.stdin, Promise<string>>();

async function sourceOf(file: string): Promise<string> {
  if (file === '-') {
    const read = inputs.get(process.stdin) ?? text(process.stdin);
    inputs.set(process.stdin, read);
    return read;
  }
  return readFile(file, 'utf8').catch((cause: unknown) => {
    throw new UsageError(`${file} can't be read: ${fileErrorMessage(cause)}`, { cause });
  });
}

/** Collects what can't be read: not YAML, aliases that expand without limit, nesting without end. */
function collecting(problems: CommandError[], place: string, read: () => void): void {
  try {
    read();
  } catch (cause) {
    problems.push(cause instanceof CommandError ? cause : unreadable(place, cause));
  }
}

function unreadable(place: string, cause: unknown): CommandError {
  if (cause instanceof YAMLParseError)
    return new UsageError(`${place}: ${cause.message.trimEnd()}`, { cause });
  const why = cause instanceof Error ? (cause.message.split('\n')[0] ?? '') : String(cause);
  return new UsageError(`${place}: can't be read as objects: ${why}`, { cause });
}

/** @param value of a document; null for an empty one. @throws CommandError for one that is not an object. */
function objectsOf(value: unknown, place: string): PlacedObject[] {
  if (value === null) return [];
  // An object that contains itself can't be converted to JSON, which the API server requires.
  JSON.stringify(value);
  const objects = objectsIn(value);
  if (objects.every(isObject)) return objects.map((object) => ({ object, place }));
  const why = objects.some(hasBooleanName) ? BOOLEAN_NAME : 'without apiVersion, kind or metadata.name';
  throw new UsageError(`${place}: ${why}`);
}

const BOOLEAN_NAME =
  'metadata.name is a boolean: kubectl reads y, n, yes, no, on and off as booleans (YAML 1.1); quote the name';

function hasBooleanName(value: unknown): boolean {
  const { metadata } = (value ?? {}) as { readonly metadata?: { readonly name?: unknown } | null };
  return typeof metadata?.name === 'boolean';
}

/**
 * As kubectl takes lists apart: those of a kind, such as MachineConfigList, have items that may lack their own
 * (apimachinery, unstructured).
 */
function objectsIn(value: unknown): readonly unknown[] {
  const { apiVersion, kind, items } = value as { apiVersion?: unknown; kind?: unknown; items?: unknown };
  if (typeof kind !== 'string' || !kind.endsWith('List') || !Array.isArray(items)) return [value];
  const type = kind === 'List' ? {} : { apiVersion, kind: kind.slice(0, -'List'.length) };
  return items.flatMap((item: unknown) =>
    typeof item === 'object' && item !== null ? objectsIn({ ...type, ...item }) : [item],
  );
}

/** @returns what reads the value of each document. */
function documentsOf(source: string): readonly (() => unknown)[] {
  const json = plainJson(source);
  return json === undefined ? parseKubectlYaml(source) : [() => json];
}

/** Spaces that programs indent JSON with: none, jq's and kubectl's. */
const INDENTS = [0, 2, 4];

/**
 * Reads an object as JSON, which takes a tenth of the time and of the memory of reading it as YAML.
 *
 * @returns undefined for whatever JSON.stringify would write in another way: what is no JSON, and what has a key twice,
 *   of which JSON.parse takes the last.
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
