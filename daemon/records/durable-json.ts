import { randomUUID } from 'node:crypto';
import { mkdir, open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { z } from 'zod';
import { nodePaths } from '../../api/names.ts';

/** A record on the disk that is not what it should be. What it said is not known, so nothing may be built on it. */
export class RecordError extends Error {
  constructor(file: string, options?: ErrorOptions & { readonly why?: string }) {
    super(`${file}: ${options?.why ?? 'not a record that this version of the daemon can read'}`, options);
    this.name = 'RecordError';
  }
}

/**
 * The newest `version` of a record that this version of Shale reads. A field that is added needs no other, because a
 * reader ignores what it doesn't know; one by which a reader that ignores it would go wrong does.
 */
const READ_VERSION = 1;

/**
 * @returns what the file holds; undefined when there is none.
 * @throws RecordError when it holds something else, or a later version of Shale wrote it.
 */
export async function readRecord<T>(file: string, schema: z.ZodType<T>): Promise<T | undefined> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Its message quotes the text, which may hold a password hash.
    throw new RecordError(file);
  }
  const version = versionOf(value);
  if (version > READ_VERSION) throw new RecordError(file, { why: ofLaterVersion(version) });
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw new RecordError(file, { cause: parsed.error });
  return parsed.data;
}

/** A value that is only read. */
type Unchanged<T> = T extends object ? { readonly [Key in keyof T]: Unchanged<T[Key]> } : T;

/** A record in the node's state directory. `root` is the running root. */
export interface StateRecord<T> {
  /** @returns undefined where there is none. @throws RecordError */
  readonly read: (root: string) => Promise<T | undefined>;
  /** Writes it, whole or not at all, and durably. */
  readonly write: (root: string, value: Unchanged<T>) => Promise<void>;
  /** Removes it durably. None there: nothing done. */
  readonly remove: (root: string) => Promise<void>;
}

/** @returns the record that is kept in a file of this name. */
export function stateRecord<T>(name: string, schema: z.ZodType<T>): StateRecord<T> {
  const fileIn = (root: string) => path.join(root, nodePaths.state, name);
  return {
    read: (root) => readRecord(fileIn(root), schema),
    write: (root, value) => writeRecord(fileIn(root), value),
    remove: (root) => removeRecord(fileIn(root)),
  };
}

/** @returns the version that a record names; that of one which names none, or nothing of the kind, is the first. */
function versionOf(value: unknown): number {
  const { version } = (value ?? {}) as { readonly version?: unknown };
  return typeof version === 'number' ? version : READ_VERSION;
}

function ofLaterVersion(version: number): string {
  return (
    `a later version of Shale wrote this record (version ${version}; this daemon reads version ${READ_VERSION}). ` +
    'Install that version of Shale again, or a later one'
  );
}

/**
 * Writes a record so that a crash at any moment leaves the old one or the new one: a temporary file in the same
 * directory, fsync, rename, fsync of the directory (rename(2), fsync(2)).
 */
export async function writeRecord(file: string, value: unknown): Promise<void> {
  const directory = path.dirname(file);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const temporary = path.join(directory, `.${path.basename(file)}.${randomUUID()}`);
  try {
    await writeFile(temporary, JSON.stringify(value), { flag: 'wx', mode: 0o600, flush: true });
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncDirectory(directory);
}

/** Removes a record durably. None there: nothing done. */
export async function removeRecord(file: string): Promise<void> {
  await rm(file, { force: true });
  await syncDirectory(path.dirname(file)).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
  });
}

async function syncDirectory(directory: string): Promise<void> {
  await using handle = await open(directory, 'r');
  await handle.sync();
}
