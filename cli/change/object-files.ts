import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { parseAllDocuments } from 'yaml';
import type { KubernetesObject } from '../../api/object.ts';
import { CommandError, exitCodes } from '../command-line/exit-codes.ts';

/**
 * Reads Kubernetes objects as `kubectl apply -f` does.
 *
 * @param names files, directories (their .yaml, .yml and .json files, by name) or `-` for standard input.
 * @returns every document, in order; the items of a List in its place.
 * @throws CommandError (exit code 2) that names the file: not there, not YAML, or a document that is no object.
 */
export async function readObjects(names: readonly string[]): Promise<KubernetesObject[]> {
  const objects: KubernetesObject[] = [];
  for (const name of names)
    for (const file of await filesOf(name)) objects.push(...(await readFileObjects(file)));
  return objects;
}

async function filesOf(name: string): Promise<string[]> {
  if (name === '-') return [name];
  const found = await stat(name).catch((cause: unknown) => {
    throw new CommandError(`${name}: no such file or directory`, exitCodes.usage, { cause });
  });
  if (!found.isDirectory()) return [name];
  const entries = await readdir(name);
  return entries
    .filter((entry) => /\.(ya?ml|json)$/.test(entry))
    .sort()
    .map((entry) => path.join(name, entry));
}

async function readFileObjects(file: string): Promise<KubernetesObject[]> {
  const source =
    file === '-'
      ? await text(process.stdin)
      : await readFile(file, 'utf8').catch((cause: unknown) => {
          const why = cause instanceof Error ? cause.message : String(cause);
          throw new CommandError(`${file} can't be read: ${why}`, exitCodes.usage, { cause });
        });
  // Kubernetes reads YAML 1.1, where a mode written 0644 is octal.
  return parseAllDocuments(source, { version: '1.1' }).flatMap((document) => {
    const [error] = document.errors;
    if (error !== undefined) throw new CommandError(`${file}: ${error.message.trimEnd()}`, exitCodes.usage);
    const value: unknown = document.toJS();
    if (value === null) return [];
    const items =
      (value as { kind?: unknown; items?: unknown }).kind === 'List'
        ? (value as { items?: unknown }).items
        : [value];
    if (!Array.isArray(items) || !items.every(isObject)) {
      throw new CommandError(
        `${file}: a document without apiVersion, kind or metadata.name`,
        exitCodes.usage,
      );
    }
    return items;
  });
}

function isObject(value: unknown): value is KubernetesObject {
  const candidate = value as Partial<KubernetesObject> | undefined;
  return (
    typeof candidate?.apiVersion === 'string' &&
    typeof candidate.kind === 'string' &&
    typeof candidate.metadata?.name === 'string'
  );
}
