import { lstat, mkdir, rm, rmdir, statfs, unlink } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { by } from '../../api/order.ts';
import { present } from '../../api/present.ts';
import { readRecord, removeRecord, writeRecord } from '../records/durable-json.ts';
import { type ManagedPaths, writeManagedPaths } from '../records/managed-paths.ts';
import {
  type ContentDigest,
  contentDigest,
  ignoreMissing,
  isMissing,
  readTreeEntry,
  sameEntry,
  type TreeEntry,
} from '../tree/tree-entry.ts';
import { copyEntry, syncDirectory, temporaryAt, type WriteStep, writeDurably } from '../tree/write-step.ts';
import {
  dropUnusedOriginals,
  type Originals,
  OriginalsRecord,
  originalsOf,
  readOriginals,
  recordOf,
  writeOriginals,
} from './originals.ts';
import { type PasswordChange, readPasswordFields, takingBack } from './passwords.ts';
import type { WriteTarget } from './write-target.ts';

const Ids = { uid: z.int(), gid: z.int() };
const Entry = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('file'), mode: z.int(), ...Ids, sha256: z.string() }),
  z.object({ kind: z.literal('directory'), mode: z.int(), ...Ids }),
  z.object({ kind: z.literal('symlink'), ...Ids, target: z.string() }),
  z.object({ kind: z.literal('special') }),
]);

const Touched = z.object({
  name: z.string(),
  place: z.string(),
  /** What was there; absent: nothing. */
  before: Entry.exactOptional(),
  /** Content digest of what is put there, where a step puts a file or link. */
  after: z.string().exactOptional(),
});
type Touched = z.infer<typeof Touched>;

const WriteLog = z.object({
  version: z.literal(1),
  /** The tree that was written to: the running root, or a staged deployment's. */
  root: z.string(),
  touched: z.array(Touched),
  passwords: z.array(z.object({ user: z.string(), before: z.string(), after: z.string() })),
  originals: OriginalsRecord,
  managed: z.array(z.tuple([z.string(), z.array(z.string())])),
});

/** The records that a write changes beside the tree, as they were. */
export interface RecordsBefore {
  readonly originals: Originals;
  readonly managed: ManagedPaths;
}

/** What a write is about to do. */
export interface LoggedWrite {
  readonly steps: readonly WriteStep[];
  /** What each path will hold, as far as a config speaks of it. */
  readonly after: ReadonlyMap<string, ContentDigest>;
  readonly passwords: readonly PasswordChange[];
}

/**
 * Puts on the disk, durably and before anything else is changed, all that it takes to undo a write: a copy of each path
 * that a step touches, and the records.
 */
export async function openWriteLog(
  { root, stateDir }: WriteTarget,
  { steps, after, passwords }: LoggedWrite,
  { originals, managed }: RecordsBefore,
): Promise<void> {
  const directory = backupsIn(stateDir);
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const places = new Map(steps.map(({ name, place }) => [name, place]));
  const touched: Touched[] = [];
  for (const [name, place] of [...places].sort(by(([name]) => name))) {
    const before = await readTreeEntry(place);
    if (before !== undefined && before.kind !== 'directory') {
      await copyEntry(place, backupAt(stateDir, touched.length));
    }
    const digest = after.get(name);
    touched.push({
      name,
      place,
      ...present({ before, after: digest }),
    });
  }
  await writeRecord(logIn(stateDir), {
    version: 1,
    root,
    touched,
    passwords,
    originals: recordOf(originals),
    managed: [...managed],
  });
}

/** The write is whole: from here on it is not undone. */
export async function closeWriteLog(stateDir: string): Promise<void> {
  await removeRecord(logIn(stateDir));
  await rm(backupsIn(stateDir), { recursive: true, force: true });
}

/**
 * Undoes a write that has not come to its end, whoever began it: at start-up, that of a daemon that was killed. Killed
 * itself and called again, it ends in the same state: the tree and the records are as they were before the write, but
 * for what somebody else has put there meanwhile.
 *
 * @throws RecordError when the log can't be read.
 */
export async function finishOrUndoWrite(target: WriteTarget): Promise<'nothing' | 'undone'> {
  const { stateDir } = target;
  const log = await readRecord(logIn(stateDir), WriteLog);
  if (log === undefined) {
    // A write that was whole may have been killed before it had tidied up: its copies are of no more use.
    await rm(backupsIn(stateDir), { recursive: true, force: true });
    await dropUnusedOriginals(stateDir, await readOriginals(stateDir));
    return 'nothing';
  }
  const putBack = await undoTree(target, log);
  // Taken back is taken back: what stays to be done is said, and not begun from the start.
  const failure = await labelAgain(target, log.root, putBack).catch((error: unknown) => ({ cause: error }));
  const originals = originalsOf(log.originals);
  await writeOriginals(stateDir, originals);
  await dropUnusedOriginals(stateDir, originals);
  await writeManagedPaths(target.varRoot ?? target.root, new Map(log.managed));
  await closeWriteLog(stateDir);
  if (failure !== undefined) {
    const names = putBack.map(({ name }) => name).join(', ');
    throw new UnlabelledError(`${names}: taken back, but without the label that they had`, failure);
  }
  return 'undone';
}

/** A write was taken back whole, but for the SELinux labels of what it had replaced. */
export class UnlabelledError extends Error {
  override readonly name = 'UnlabelledError';
}

/** What is put back is a copy, and has the label of its directory. What has to be taken back is not cancelled. */
async function labelAgain(
  { root: running, varRoot = running, relabel }: WriteTarget,
  root: string,
  touched: readonly Touched[],
): Promise<undefined> {
  for (const tree of new Set([root, varRoot])) {
    const names = touched.flatMap(({ name, place }) => (place === path.join(tree, name) ? [name] : []));
    if (names.length > 0) await relabel(tree, names, new AbortController().signal);
  }
}

async function undoTree(
  { stateDir, setPasswords }: WriteTarget,
  { root, touched, passwords }: z.infer<typeof WriteLog>,
): Promise<readonly Touched[]> {
  // A staged deployment may have been deleted since, and what was written to it is gone with it.
  const isGone = (await readTreeEntry(root)) === undefined;
  const isLeft = ({ place }: Touched) => !(isGone && place.startsWith(`${root}/`));
  for (const each of touched.toReversed()) if (isLeft(each)) await clear(each);
  for (const [index, each] of touched.entries()) {
    if (isLeft(each)) await putBack(each, backupAt(stateDir, index));
  }
  // All of them: an undo that was killed may have put some back before.
  const wereThere = touched.filter((each) => each.before !== undefined && isLeft(each));
  if (passwords.length === 0 || isGone) return wereThere;
  const fields = takingBack(passwords, await readPasswordFields(root));
  // What has to be taken back is not cancelled; setting passwords has a time limit of its own.
  await setPasswords(root, fields, new AbortController().signal);
  return wereThere;
}

/** Removes what a killed step left behind, and what is of another kind than it was. */
async function clear(touched: Touched): Promise<void> {
  const { place, before } = touched;
  // Looked at first: a file system that is read-only refuses to remove even what is not there.
  if ((await readTreeEntry(temporaryAt(place))) !== undefined) await unlink(temporaryAt(place));
  const now = await readTreeEntry(place);
  if (now === undefined || now.kind === before?.kind || isTheirs(now, touched)) return;
  if (now.kind === 'directory') {
    // Something else may have been put into it meanwhile, and stays.
    await ignoring(isMissingOrFull, () => rmdir(place));
  } else if (before === undefined || before.kind === 'directory') {
    await unlink(place);
  }
  await syncDirectory(path.dirname(place));
}

async function putBack(touched: Touched, backup: string): Promise<void> {
  const { name, place, before } = touched;
  const now = await readTreeEntry(place);
  if (before === undefined || sameEntry(now, before) || isTheirs(now, touched)) return;
  if (before.kind === 'directory') await writeDurably({ ...before, name, place });
  else await writeDurably({ kind: 'restore', source: backup, name, place });
}

/** A file or link that neither was there before the write nor came by it. */
function isTheirs(now: TreeEntry | undefined, { before, after }: Touched): boolean {
  if (now === undefined || now.kind === 'directory' || sameEntry(now, before)) return false;
  return contentDigest(now) !== after;
}

async function ignoring(isExpected: (error: unknown) => boolean, act: () => Promise<void>): Promise<void> {
  await act().catch((error: unknown) => {
    if (!isExpected(error)) throw error;
  });
}

function isMissingOrFull(error: unknown): boolean {
  return isMissing(error) || (error instanceof Error && 'code' in error && error.code === 'ENOTEMPTY');
}

function logIn(stateDir: string): string {
  return path.join(stateDir, 'write.json');
}

function backupsIn(stateDir: string): string {
  return path.join(stateDir, 'write');
}

function backupAt(stateDir: string, index: number): string {
  return path.join(backupsIn(stateDir), `${index}`);
}

/** The disk has too little room for a write and for taking it back. Nothing was written. */
export class NoRoomError extends Error {
  override readonly name = 'NoRoomError';
}

/** Left to the host, and for the records of the write itself. */
const RESERVE_BYTES = 1024 * 1024;
/** Each file takes whole blocks, and its name a place in a directory. */
const BYTES_PER_STEP = 8192;

/**
 * @param steps of the write. @param directories whose file systems it writes to: the tree's and that of the backups.
 * @throws NoRoomError when what comes and the backups of what goes might not fit.
 */
export async function requireRoom(
  steps: readonly WriteStep[],
  directories: readonly string[],
): Promise<void> {
  let needed = RESERVE_BYTES;
  for (const step of steps) {
    const replaced = await lstat(step.place).catch(ignoreMissing);
    const restored = step.kind === 'restore' ? await lstat(step.source).catch(ignoreMissing) : undefined;
    const coming = step.kind === 'file' ? step.contents.byteLength : (restored?.size ?? 0);
    // What is replaced is backed up, perhaps kept as an original, and there still while the new comes.
    needed += BYTES_PER_STEP + coming + 2 * (replaced?.isFile() === true ? replaced.size : 0);
  }
  for (const directory of new Set(directories)) {
    const { bavail, bsize, blocks } = await statfs(directory);
    // A file system without a size has no limit that it could tell (statfs(2), tmpfs).
    if (blocks === 0 || bavail * bsize >= needed) continue;
    throw new NoRoomError(
      `${directory}: ${kibibytes(needed)} are needed to write the config and to be able to take it back, ${kibibytes(bavail * bsize)} are free`,
    );
  }
}

function kibibytes(bytes: number): string {
  return `${Math.ceil(bytes / 1024)} KiB`;
}
