import type { Stats } from 'node:fs';
import { lstat, mkdir, rm, statfs } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { byCodeUnits } from '../../../api/order.ts';
import { present } from '../../../api/present.ts';
import { hasCode, PathError } from '../../files/host-file-error.ts';
import { HostTree, rootOf, type TreeRoots } from '../../files/host-tree.ts';
import {
  type ContentDigest,
  contentDigest,
  ignoreMissing,
  readTreeEntry,
  sameEntry,
  type TreeEntry,
} from '../../files/tree-entry.ts';
import { takeSteps, type WriteStep } from '../../files/write-step.ts';
import type { SetPasswords } from '../../host/host.ts';
import type { Relabel } from '../../host/selinux-labels.ts';
import { readRecord, removeRecord, writeRecord } from '../../records/durable-json.ts';
import { type ManagedPaths, writeManagedPaths, writeStatePaths } from '../../records/managed-paths.ts';
import { HASH_UP_TO } from '../entries/desired-tree.ts';
import { fieldsBefore, type PasswordChange, readPasswordFields } from '../passwords.ts';
import {
  dropUnusedOriginals,
  type Originals,
  OriginalsRecord,
  originalsOf,
  originalsRecord,
  readOriginals,
  writeOriginals,
} from './originals.ts';

/** Where standard mode writes. */
export interface WriteTarget extends TreeRoots {
  /**
   * The root of the deployment whose image has the version of /etc to restore, where that is not the tree's own: in a
   * live update.
   */
  readonly imageRoot?: string;
  /** Where originals and the log of a write lie: `/var/lib/shale` of the host. */
  readonly stateDir: string;
  readonly setPasswords: SetPasswords;
  readonly relabel: Relabel;
}

const Ids = { uid: z.int(), gid: z.int() };
const Entry = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('file'), mode: z.int(), ...Ids, sha256: z.string() }),
  z.object({ kind: z.literal('directory'), mode: z.int(), ...Ids }),
  z.object({ kind: z.literal('symlink'), ...Ids, target: z.string() }),
  z.object({ kind: z.literal('special') }),
]);

const Touched = z.object({
  /** Without links. */
  name: z.string(),
  /** Where it lay. Daemons before 0.2 find it by this alone. */
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
  /** The record of state paths; absent in the log of a daemon before 0.2. */
  state: z.array(z.tuple([z.string(), z.array(z.string())])).exactOptional(),
});

/** The records that a write changes beside the tree, as they were. */
export interface RecordsBefore {
  readonly originals: Originals;
  readonly managed: ManagedPaths;
  readonly state: ManagedPaths;
}

/** What a write is about to do. */
export interface LoggedWrite {
  readonly steps: readonly WriteStep[];
  /** What each path will hold that a config names. */
  readonly after: ReadonlyMap<string, ContentDigest>;
  readonly passwords: readonly PasswordChange[];
}

/**
 * Puts on the disk, durably and before anything else is changed, all that it takes to undo a write: a copy of each path
 * that a step touches, and the records.
 */
export async function openWriteLog(
  target: WriteTarget,
  { steps, after, passwords }: LoggedWrite,
  { originals, managed, state }: RecordsBefore,
): Promise<void> {
  const { root, stateDir } = target;
  const directory = backupsIn(stateDir);
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const names = [...new Set(steps.map(({ name }) => name))].sort(byCodeUnits);
  const touched: Touched[] = [];
  await using tree = new HostTree(target);
  for (const name of names) {
    const before = await tree.entry(name, HASH_UP_TO);
    if (before !== undefined && before.kind !== 'directory') {
      const parent = await tree.parentOf(name);
      await parent.copyTo(path.posix.basename(name), backupAt(stateDir, touched.length));
    }
    const digest = after.get(name);
    touched.push({
      name,
      place: path.join(rootOf(target, name), name),
      ...present({ before, after: digest }),
    });
  }
  await writeRecord(logIn(stateDir), {
    version: 1,
    root,
    touched,
    passwords,
    originals: originalsRecord(originals),
    managed: [...managed],
    state: [...state],
  });
}

/** The write is whole: from here on it is not undone. */
export async function closeWriteLog(stateDir: string): Promise<void> {
  await removeRecord(logIn(stateDir));
  await rm(backupsIn(stateDir), { recursive: true, force: true });
}

/**
 * Undoes a write that has not come to its end: at start-up, that of a daemon that was killed. Killed
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
  const undone = await undoTree(target, log);
  // The write is undone: what stays to be done is reported, and the undo not begun again.
  const failure = await labelAgain(target, log.root, undone).catch((error: unknown) => ({ cause: error }));
  const originals = originalsOf(log.originals);
  await writeOriginals(stateDir, originals);
  await dropUnusedOriginals(stateDir, originals);
  await writeManagedPaths(target.varRoot ?? target.root, new Map(log.managed));
  if (log.state !== undefined) await writeStatePaths(target.varRoot ?? target.root, new Map(log.state));
  await closeWriteLog(stateDir);
  if (failure !== undefined) {
    const names = undone.map(({ name }) => name).join(', ');
    throw new UnlabelledError(`${names}: undone, but without the label that they had`, failure);
  }
  return 'undone';
}

/** A write was undone whole, but for the SELinux labels of what it had replaced. */
export class UnlabelledError extends Error {
  override readonly name = 'UnlabelledError';
}

/** A copy that is restored has the label of its directory. An undo is not cancelled. */
async function labelAgain(
  target: WriteTarget,
  root: string,
  touched: readonly Touched[],
): Promise<undefined> {
  const roots = rootsOf(target, root);
  for (const tree of new Set([root, roots.varRoot])) {
    const names = touched.map(({ name }) => name).filter((name) => rootOf(roots, name) === tree);
    if (names.length > 0) await target.relabel(tree, names, new AbortController().signal);
  }
}

/** A write may have been to a staged deployment, and is undone by a daemon that looks at the running root. */
function rootsOf(
  { root: running, varRoot = running }: WriteTarget,
  root: string,
): { readonly root: string; readonly varRoot: string } {
  return { root, varRoot };
}

async function undoTree(
  target: WriteTarget,
  { root, touched, passwords }: z.infer<typeof WriteLog>,
): Promise<readonly Touched[]> {
  const { stateDir, setPasswords } = target;
  const roots = rootsOf(target, root);
  // A staged deployment may have been deleted since, and what was written to it is gone with it.
  const isGone = (await readTreeEntry(root)) === undefined;
  const isLeft = ({ name }: Touched) => !(isGone && rootOf(roots, name) === root);
  for (const each of touched.toReversed()) if (isLeft(each)) await ignoringTheirs(clear(roots, each));
  for (const [index, each] of touched.entries()) {
    if (isLeft(each)) await ignoringTheirs(restoreBackup(roots, each, backupAt(stateDir, index)));
  }
  // All of them: an undo that was killed may have put some back before.
  const wereThere = touched.filter((each) => each.before !== undefined && isLeft(each));
  if (passwords.length === 0 || isGone) return wereThere;
  const fields = fieldsBefore(passwords, await readPasswordFields(root));
  // An undo is not cancelled; setting passwords has a time limit of its own.
  await setPasswords(root, fields, new AbortController().signal);
  return wereThere;
}

/** If a parent of the path is no directory any more, somebody else has replaced it meanwhile. */
async function ignoringTheirs(undone: Promise<void>): Promise<void> {
  await undone.catch((error: unknown) => {
    if (!(error instanceof PathError)) throw error;
  });
}

/** Removes what a killed step left behind, and what is of another kind than it was. */
async function clear(roots: TreeRoots, touched: Touched): Promise<void> {
  const { name, before } = touched;
  await using tree = new HostTree(roots);
  const parent = await tree.directory(path.posix.dirname(name));
  if (parent === undefined) return;
  const base = path.posix.basename(name);
  await parent.removeTemporary(base);
  const now = await parent.entry(base, HASH_UP_TO);
  if (now === undefined || now.kind === before?.kind || isTheirs(now, touched)) return;
  if (now.kind === 'directory') {
    await parent.removeDirectory(base).catch((error: unknown) => {
      // Something else may have been put into it meanwhile, and stays.
      if (!hasCode(error, 'ENOENT', 'ENOTEMPTY')) throw error;
    });
  } else if (before === undefined || before.kind === 'directory') {
    await parent.remove(base);
  }
  await parent.sync();
}

async function restoreBackup(roots: TreeRoots, touched: Touched, backup: string): Promise<void> {
  const { name, before } = touched;
  await using tree = new HostTree(roots);
  const now = await tree.entry(name, HASH_UP_TO);
  if (before === undefined || sameEntry(now, before) || isTheirs(now, touched)) return;
  const step: WriteStep =
    before.kind === 'directory' ? { ...before, name } : { kind: 'restore', source: backup, name };
  await takeSteps(roots, [step]);
}

/** Whether a file or link is neither what was there before the write nor what the write put there. */
function isTheirs(now: TreeEntry | undefined, { before, after }: Touched): boolean {
  if (now === undefined || now.kind === 'directory' || sameEntry(now, before)) return false;
  return contentDigest(now) !== after;
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

/** The disk has too little room for a write and its undo. Nothing was written. */
export class NoRoomError extends Error {
  override readonly name = 'NoRoomError';
}

/** Left to the host, and for the records of the write itself. */
const RESERVE_BYTES = 1024 * 1024;
/** Each file takes whole blocks, and its name a place in a directory. */
const BYTES_PER_STEP = 8192;

/**
 * @param target whose file systems it writes to, with that of the backups. @param steps of the write.
 * @throws NoRoomError when what comes and the backups of what goes might not fit.
 */
export async function requireRoom(target: TreeRoots, steps: readonly WriteStep[]): Promise<void> {
  await using tree = new HostTree(target);
  let needed = RESERVE_BYTES;
  for (const step of steps) {
    const replaced = await tree.stat(step.name);
    const restored = step.kind === 'restore' ? await lstat(step.source).catch(ignoreMissing) : undefined;
    const coming =
      step.kind === 'file' ? step.contents.byteLength : restored === undefined ? 0 : bytesOf(restored);
    // What is replaced is backed up, perhaps kept as an original, and there still while the new comes.
    needed += BYTES_PER_STEP + coming + 2 * (replaced?.isFile() === true ? bytesOf(replaced) : 0);
  }
  // Below these is all that is written. The root itself may be a composefs, which never has room.
  const directories = [
    ['/etc', target.root],
    ['/var', target.varRoot ?? target.root],
  ] as const;
  for (const [name, root] of directories) {
    const { bavail, bsize, blocks } =
      (await statfs(path.join(root, name)).catch(ignoreMissing)) ?? (await statfs(root));
    const free = bavail * bsize;
    // A file system without a size has no limit that it could tell (statfs(2), tmpfs).
    if (blocks === 0 || free >= needed) continue;
    throw new NoRoomError(
      `${name}: ${kibibytes(needed)} are needed to write the config and to be able to undo that, ${kibibytes(free)} are free`,
    );
  }
}

/** Holes of a sparse file take no room, nor do they in its copy (cp(1)). */
function bytesOf({ size, blocks }: Stats): number {
  return Math.min(size, blocks * 512);
}

function kibibytes(bytes: number): string {
  return `${Math.ceil(bytes / 1024)} KiB`;
}
