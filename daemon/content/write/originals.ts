import { createHash } from 'node:crypto';
import { mkdir, readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { by } from '../../../api/order.ts';
import { HostTree, type TreeRoots } from '../../files/host-tree.ts';
import { ignoreMissing } from '../../files/tree-entry.ts';
import { readRecord, writeRecord } from '../../records/durable-json.ts';

const Original = z.discriminatedUnion('kind', [
  /** As the image has it: its version under /usr/etc, or nothing. */
  z.object({ kind: z.literal('image') }),
  /** Nothing, although the image has something there. */
  z.object({ kind: z.literal('absent') }),
  z.object({ kind: z.literal('directory'), mode: z.int(), uid: z.int(), gid: z.int() }),
  /** Somebody's own, kept as a copy. */
  z.object({ kind: z.literal('copy') }),
]);
/** What a path was before a config took it over, and will be when none has it any more. */
export type Original = z.infer<typeof Original>;

/** The originals as a record on the disk. */
export const OriginalsRecord = z.object({
  version: z.literal(1),
  paths: z.record(z.string().startsWith('/'), Original),
  /** Directories that were made only because something lies in them, and go when nothing does. */
  made: z.array(z.string().startsWith('/')),
  /** As Originals.config; absent where an older daemon wrote the record. */
  config: z.string().exactOptional(),
});

/** The originals of all paths that the present config owns. */
export interface Originals {
  readonly paths: ReadonlyMap<string, Original>;
  readonly made: ReadonlySet<string>;
  /**
   * The rendered config whose files the running root has, by name; undefined where standard mode has written none. It
   * changes with the write itself, so it is right also where a daemon was killed before the journal had it.
   */
  readonly config?: string | undefined;
}

/** @returns the record; empty when nothing was written yet. @throws RecordError when it can't be read. */
export async function readOriginals(stateDir: string): Promise<Originals> {
  const record = await readRecord(recordIn(stateDir), OriginalsRecord);
  return originalsOf(record ?? { version: 1, paths: {}, made: [] });
}

/** @returns what a record says. */
export function originalsOf({ paths, made, config }: z.infer<typeof OriginalsRecord>): Originals {
  return { paths: new Map(Object.entries(paths)), made: new Set(made), config };
}

/** @returns the record that says this, sorted. */
export function originalsRecord({ paths, made, config }: Originals): z.infer<typeof OriginalsRecord> {
  const sorted = [...paths].sort(by(([name]) => name));
  const record = { version: 1, paths: Object.fromEntries(sorted), made: [...made].sort() } as const;
  return config === undefined ? record : { ...record, config };
}

/** Writes the record durably. */
export async function writeOriginals(stateDir: string, originals: Originals): Promise<void> {
  await writeRecord(recordIn(stateDir), originalsRecord(originals));
}

/** Copies what lies at a path, before a config takes it over. */
export async function keepOriginal(roots: TreeRoots, stateDir: string, name: string): Promise<void> {
  const copy = originalAt(stateDir, name);
  await mkdir(path.dirname(copy), { recursive: true, mode: 0o700 });
  await using tree = new HostTree(roots);
  await (await tree.parentOf(name)).copyTo(path.posix.basename(name), copy);
}

/** Removes copies that the record does not name: left by writes that were undone, or restored. */
export async function dropUnusedOriginals(stateDir: string, { paths }: Originals): Promise<void> {
  const kept = [...paths].filter(([, original]) => original.kind === 'copy').map(([name]) => keyOf(name));
  const directory = path.join(stateDir, 'originals');
  for (const name of (await readdir(directory).catch(ignoreMissing)) ?? []) {
    if (!kept.includes(name)) await rm(path.join(directory, name), { force: true });
  }
}

/** @returns where the copy of a path lies. */
export function originalAt(stateDir: string, name: string): string {
  return path.join(stateDir, 'originals', keyOf(name));
}

/** A path is longer than a file name may be, so its digest stands for it. */
function keyOf(name: string): string {
  return createHash('sha256').update(name).digest('hex');
}

function recordIn(stateDir: string): string {
  return path.join(stateDir, 'originals.json');
}
