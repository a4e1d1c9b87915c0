import { by } from '../../../api/order.ts';
import { PathError } from '../../files/host-file-error.ts';
import type { Location } from '../../files/host-tree.ts';
import { contentDigest, sameEntry, type TreeEntry } from '../../files/tree-entry.ts';
import type { WriteStep } from '../../files/write-step.ts';
import { type Drift, driftOf } from '../drift/drift.ts';
import type { Desired } from '../entries/desired-tree.ts';
import type { Original, Originals } from './originals.ts';

/** What a node has at one path that either config names, before a write. */
export interface SeenPath {
  readonly location: Location;
  /** What is there. */
  readonly found: TreeEntry | undefined;
  /** What the image has there, under /usr/etc. */
  readonly stock: Source;
  /** The copy that was kept of it, if any. */
  readonly copy: Source;
  /** Whether the record of managed paths knows what is there as Shale's. */
  readonly isManaged: boolean;
  /** What the config on the disk wants there; undefined when it does not name the path. */
  readonly from: Desired | undefined;
}

/** All that is known before a write about one path that either config names. */
export interface ObservedPath extends SeenPath {
  /** What the coming config wants there. */
  readonly to: Desired | undefined;
  /** The name, without links, of the target of the coming config's hard link. */
  readonly hardLinkSource: string | undefined;
  /** Whether both are one file. */
  readonly isLinked: boolean;
}

/** Something that can be restored. */
export interface Source {
  readonly place: string;
  readonly entry: TreeEntry | undefined;
}

export interface PlanOptions {
  /**
   * Names that this write leaves alone although content has them: their originals and parents stay.
   */
  readonly kept?: ReadonlySet<string>;
  /** Remove what is no directory on the way to a path, unless a config has it; what an admin permits by a repair. */
  readonly clearsObstacles?: boolean;
}

export interface WritePlan {
  /** What somebody else changed since the last write. */
  readonly foreign: readonly Drift[];
  readonly steps: readonly WriteStep[];
  /** The record of originals after the write. */
  readonly originals: Originals;
  /** Paths of which a copy has to be kept before they are overwritten. */
  readonly keep: readonly string[];
  /** What each path held when the write was planned. */
  readonly found: ReadonlyMap<string, TreeEntry | undefined>;
  /** What each path will hold that the coming config owns. */
  readonly owned: ReadonlyMap<string, string>;
  /** What each path will hold that no config owns any more. */
  readonly released: ReadonlyMap<string, string>;
}

/**
 * Plans a write: first the removals, children before parents, so that a file may become a directory or the reverse;
 * then what is to be there, parents before children, and last the hard links.
 *
 * @param paths every path that either content names, each once. @param originals the record before the write.
 * @param made the directories of `originals.made`, without links.
 * @throws PathError when a parent of a path is no directory and neither config's.
 */
export function planWrite(
  paths: readonly ObservedPath[],
  originals: Originals,
  made: readonly string[],
  { kept = new Set(), clearsObstacles = false }: PlanOptions = {},
): WritePlan {
  const outcomes = outcomesOf(paths, originals, new Set(made));
  const removals = new Map(
    outcomes.flatMap(({ steps: { removal } }) => (removal === undefined ? [] : [entryOf(removal)])),
  );
  const writes = outcomes.flatMap(({ steps: { write } }) => (write === undefined ? [] : [write]));
  for (const removal of obstacles(paths, { outcomes, clearsObstacles })) removals.set(removal.name, removal);
  const parents = outcomes.flatMap(({ steps }) => steps.parents);
  const needed = [
    ...writes,
    ...paths.filter(({ to }) => to?.entry !== undefined).map(({ location }) => location),
  ];
  const observed = new Set(paths.map(({ location }) => location.name));
  const neededNames = [...needed.map(({ name }) => name), ...[...kept].filter((name) => !observed.has(name))];
  const isNeeded = (directory: string) => neededNames.some((name) => name.startsWith(`${directory}/`));
  const owned = new Set(paths.filter(({ to }) => to !== undefined).map(({ location }) => location.name));
  for (const directory of made) {
    if (isNeeded(directory) || owned.has(directory) || removals.has(directory)) continue;
    removals.set(directory, { kind: 'remove directory', name: directory, evenIfNotEmpty: 'leave' });
  }
  const stays = outcomes.filter((outcome) => isReleasedDirectory(outcome) && isNeeded(outcome.name));
  for (const { name } of stays) removals.delete(name);
  const asParents = stays.flatMap((outcome) => asParent(outcome, paths));
  const [hardLinks, others] = partition(
    [...new Map([...parents, ...asParents, ...writes].map(entryOf)).values()].sort(by(({ name }) => name)),
    ({ kind }) => kind === 'hard link',
  );
  // A directory that was there before gets its attributes back, whatever it holds now.
  const given = new Set(outcomes.filter(({ entry }) => entry !== undefined).map(({ name }) => name));
  const become = [...parents, ...stays].map(({ name }) => name).filter((name) => !given.has(name));
  return {
    foreign: outcomes.flatMap(({ foreign }) => foreign),
    steps: [
      ...[...removals.values()].sort(by(({ name }) => name)).reverse(),
      // A directory that the config itself asks for comes with its own owner and mode.
      ...others,
      // The file that a hard link shares its inode with may be replaced by this write.
      ...hardLinks,
    ],
    originals: {
      paths: new Map([
        ...[...originals.paths].filter(([name]) => kept.has(name) && !observed.has(name)),
        ...outcomes.flatMap(({ name, original, isOwned }) => (isOwned ? [[name, original] as const] : [])),
      ]),
      made: new Set([...made.filter(isNeeded), ...become]),
    },
    found: new Map(paths.map(({ location, found }) => [location.name, found])),
    keep: outcomes.flatMap(({ keep }) => (keep === undefined ? [] : [keep])),
    owned: digestsOf(outcomes.filter(({ isOwned }) => isOwned)),
    released: digestsOf(outcomes.filter(({ isOwned }) => !isOwned)),
  };
}

interface Outcome {
  readonly name: string;
  readonly found: TreeEntry | undefined;
  /** What the path will hold. */
  readonly entry: TreeEntry | undefined;
  readonly isOwned: boolean;
  /** Whether a step is taken. */
  readonly isChange: boolean;
  readonly original: Original;
  readonly keep: string | undefined;
  readonly foreign: readonly Drift[];
  /** How it comes about. */
  readonly steps: {
    readonly removal: WriteStep | undefined;
    readonly write: WriteStep | undefined;
    readonly parents: readonly WriteStep[];
  };
}

const NO_STEPS: Outcome['steps'] = { removal: undefined, write: undefined, parents: [] };

/** A directory that no config asks for any more. */
function isReleasedDirectory({ found, entry, isOwned }: Outcome): boolean {
  return !isOwned && entry === undefined && found?.kind === 'directory';
}

/** It stays for what the coming config has below it, as if it were made for that. */
function asParent({ name, found }: Outcome, paths: readonly ObservedPath[]): readonly WriteStep[] {
  const below = paths.find(({ location, to }) => to !== undefined && location.name.startsWith(`${name}/`));
  if (below?.to === undefined) return [];
  const entry = { kind: 'directory', ...below.to.parents } as const;
  return sameEntry(found, entry) ? [] : [{ ...entry, name }];
}

function outcomesOf(
  paths: readonly ObservedPath[],
  originals: Originals,
  made: ReadonlySet<string>,
): readonly Outcome[] {
  const [hardLinks, others] = partition(paths, ({ hardLinkSource }) => hardLinkSource !== undefined);
  const outcomes = others.map((path) => outcomeOf(path, { originals, made, isRelinked: false }));
  const changed = new Set(outcomes.filter(({ isChange }) => isChange).map(({ name }) => name));
  return [
    ...outcomes,
    ...hardLinks.map((path) => {
      const isRelinked = !path.isLinked || changed.has(path.hardLinkSource ?? '');
      return outcomeOf(path, { originals, made, isRelinked });
    }),
  ];
}

/** @param isRelinked whether a hard link has to be made again, whatever is there. */
function outcomeOf(
  path: ObservedPath,
  { originals, made, isRelinked }: { originals: Originals; made: ReadonlySet<string>; isRelinked: boolean },
): Outcome {
  const { found, from, to } = path;
  const { name } = path.location;
  const known = originals.paths.get(name);
  const original = known ?? originalOf(path, made);
  const { entry, step } = to === undefined ? release(path, original) : adopt(path, to);
  const isOther = !sameEntry(found, entry);
  const isChange = isOther || isRelinked;
  const drift = from === undefined || !isOther ? undefined : driftOf(name, found, from.entry);
  return {
    name,
    found,
    entry,
    isChange,
    isOwned: to !== undefined,
    original,
    keep: known === undefined && to !== undefined && original.kind === 'copy' ? name : undefined,
    foreign: drift === undefined ? [] : [drift],
    steps: isChange
      ? { removal: removalOf(name, found, entry), write: step, parents: parentsFor(path, step) }
      : NO_STEPS,
  };
}

/** @returns the steps that make the directories which a step needs above it. */
function parentsFor({ location, from, to }: ObservedPath, step: WriteStep | undefined): readonly WriteStep[] {
  if (step === undefined) return [];
  const attributes = (to ?? from)?.parents ?? { mode: 0o755, uid: 0, gid: 0 };
  return location.missingParents.map((name) => ({ kind: 'directory', name, isParent: true, ...attributes }));
}

/**
 * What was there before the coming config takes a path over. What the former config had already was taken over by that:
 * an image brings its content without a record of originals, and an edit of it is not what was there before.
 */
function originalOf(
  { location, found, stock, from, isManaged }: SeenPath,
  made: ReadonlySet<string>,
): Original {
  // Nobody asked for it, and it goes with what it was made for.
  if (found?.kind === 'directory' && made.has(location.name)) {
    return { kind: stock.entry === undefined ? 'image' : 'absent' };
  }
  if (isManaged || from !== undefined || sameEntry(found, stock.entry)) return { kind: 'image' };
  if (found === undefined) return { kind: 'absent' };
  if (found.kind !== 'directory') return { kind: 'copy' };
  return { kind: 'directory', mode: found.mode, uid: found.uid, gid: found.gid };
}

/** @returns what is restored at a path if no config owns it any more. @param made as planWrite. */
export function entryAfterRelease(
  path: SeenPath,
  originals: Originals,
  made: readonly string[],
): TreeEntry | undefined {
  const original = originals.paths.get(path.location.name) ?? originalOf(path, new Set(made));
  return release(path, original).entry;
}

interface Wanted {
  readonly entry: TreeEntry | undefined;
  /** How it comes about, when something is to be there. */
  readonly step: WriteStep | undefined;
}

/** @returns how a path gets what a config wants there. @throws PathError for what no config can ask for. */
function adopt(
  { location, hardLinkSource }: Pick<ObservedPath, 'location' | 'hardLinkSource'>,
  { entry, contents }: Desired,
): Wanted {
  const at = { name: location.name };
  if (entry === undefined) return { entry, step: undefined };
  if (hardLinkSource !== undefined)
    return { entry, step: { kind: 'hard link', source: hardLinkSource, ...at } };
  if (entry.kind === 'file' && contents !== undefined) return { entry, step: { ...entry, contents, ...at } };
  if (entry.kind === 'directory' || entry.kind === 'symlink') return { entry, step: { ...entry, ...at } };
  throw new PathError(`${at.name}: no config can ask for a ${entry.kind} without contents`);
}

/** What is restored at a path when no config owns it any more. */
function release({ location, stock, copy }: SeenPath, original: Original): Wanted {
  const at = location.name;
  switch (original.kind) {
    case 'absent':
      return { entry: undefined, step: undefined };
    case 'directory':
      return { entry: original, step: { ...original, name: at } };
    case 'copy':
      return restore(at, copy);
    case 'image':
      return restore(at, stock);
  }
}

function restore(name: string, { place, entry }: Source): Wanted {
  if (entry === undefined) return { entry, step: undefined };
  if (entry.kind === 'directory') return { entry, step: { ...entry, name } };
  return { entry, step: { kind: 'restore', source: place, name } };
}

/** What is there goes first when nothing is to be there, or when it can't be replaced by a rename. */
function removalOf(
  name: string,
  found: TreeEntry | undefined,
  wanted: TreeEntry | undefined,
): WriteStep | undefined {
  if (found === undefined) return undefined;
  if (found.kind === 'directory') {
    if (wanted?.kind === 'directory') return undefined;
    return { kind: 'remove directory', name, evenIfNotEmpty: wanted === undefined ? 'leave' : 'fail' };
  }
  return wanted === undefined || wanted.kind === 'directory' ? { kind: 'remove', name } : undefined;
}

/**
 * @returns the steps that remove parents of a path that are no directories, where that is permitted.
 * @throws PathError where it is not permitted, or where one of the configs names such a parent or restores it.
 */
function obstacles(
  paths: readonly ObservedPath[],
  { outcomes, clearsObstacles }: { readonly outcomes: readonly Outcome[]; readonly clearsObstacles: boolean },
): readonly WriteStep[] {
  const outcomeAt = new Map(outcomes.map((outcome) => [outcome.name, outcome]));
  return paths.flatMap(({ location, to }): readonly WriteStep[] => {
    const { name, missingParents, blockedBy } = location;
    if (to?.entry === undefined) return [];
    const blocked = (parent: string) => new PathError(`${name} can't be written: ${parent} is no directory`);
    for (const parent of [...missingParents, ...(blockedBy === undefined ? [] : [blockedBy])]) {
      const entry = outcomeAt.get(parent)?.entry;
      if (entry !== undefined && entry.kind !== 'directory') throw blocked(parent);
    }
    if (blockedBy === undefined || outcomeAt.has(blockedBy)) return [];
    if (clearsObstacles) return [{ kind: 'remove', name: blockedBy }];
    throw blocked(blockedBy);
  });
}

function digestsOf(outcomes: readonly Outcome[]): ReadonlyMap<string, string> {
  return new Map(outcomes.map(({ name, entry }) => [name, contentDigest(entry)]));
}

/** @returns the values of which something holds, and the others, both in their order. */
export function partition<T>(
  items: readonly T[],
  isFirst: (item: T) => boolean,
): readonly [readonly T[], readonly T[]] {
  return [items.filter(isFirst), items.filter((item) => !isFirst(item))];
}

function entryOf(step: WriteStep): readonly [string, WriteStep] {
  return [step.name, step];
}
