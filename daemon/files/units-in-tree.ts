import { constants } from 'node:fs';
import { lstat, open, readdir, readlink } from 'node:fs/promises';
import path from 'node:path';
import { ETC_UNITS, type UnitFile, type UnitTree } from '../../machineconfig/units/unit-tree.ts';
import { inImageEtc } from './image-tree.ts';
import { resolveInRoot } from './resolve-in-root.ts';
import { ignoreMissing } from './tree-entry.ts';

/** Where the units of a tree are read from; as UnitTree, but it takes time. */
export interface UnitSource {
  entry(path: string): Promise<UnitFile | undefined>;
  list(directory: string): Promise<readonly string[]>;
  links(): Promise<ReadonlyMap<string, string>>;
}

/** No unit's text comes near it. A longer file is read by nobody here, and so is no unit. */
const TEXT_MAX = 1024 * 1024;

/**
 * @param root of a tree. @param etc where it has the /etc that is meant, absolute within the root.
 * @returns its units, read when they are asked for.
 */
export function unitsIn(root: string, etc = '/etc'): UnitSource {
  const placeOf = (name: string) =>
    resolveInRoot(root, name.startsWith('/etc/') ? inImageEtc(etc, name) : name);
  const list = async (directory: string) => {
    // By a name in it, so that a link that the directory itself is leads to where it does in the root.
    const place = await placeOf(`${directory}/name`);
    if (place === undefined) return [];
    return ((await readdir(path.dirname(place)).catch(ignoreMissing)) ?? []).sort();
  };
  const entry = async (name: string) => unitFileAt(await placeOf(name));
  const addLinks = async (links: Map<string, string>, directory: string): Promise<void> => {
    for (const base of await list(directory)) {
      const name = `${directory}/${base}`;
      const place = await placeOf(name);
      const stats = place === undefined ? undefined : await lstat(place).catch(ignoreMissing);
      if (place === undefined || stats === undefined) continue;
      if (stats.isSymbolicLink()) links.set(name, await readlink(place));
      else if (stats.isDirectory()) await addLinks(links, name);
    }
  };
  return {
    entry,
    list,
    links: async () => {
      const links = new Map<string, string>();
      await addLinks(links, ETC_UNITS);
      return links;
    },
  };
}

/** @param place outside of the root. @returns what lies there, for systemctl; a pipe is not waited for. */
export async function unitFileAt(place: string | undefined): Promise<UnitFile | undefined> {
  const stats = place === undefined ? undefined : await lstat(place).catch(ignoreMissing);
  if (place === undefined || stats === undefined) return undefined;
  if (stats.isSymbolicLink()) return { kind: 'link', target: await readlink(place) };
  if (!stats.isFile()) return { kind: 'other' };
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
  await using handle = await open(place, O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch(ignoreMissing);
  if (handle === undefined) return undefined;
  const { size } = await handle.stat();
  return size > TEXT_MAX ? { kind: 'other' } : { kind: 'file', text: await handle.readFile('utf8') };
}

/**
 * Calls a pure function with a tree that it reads on demand: what the function asks for and isn't read yet is read, and
 * the function called again, until it asks for nothing more. What it asks for must depend on its answers alone.
 */
export async function withUnits<T>(source: UnitSource, decide: (tree: UnitTree) => T): Promise<T> {
  const entries = new Map<string, UnitFile | undefined>();
  const lists = new Map<string, readonly string[]>();
  const links = await source.links();
  for (;;) {
    const required = { entries: new Set<string>(), lists: new Set<string>() };
    const result = decide({
      links,
      entry: (name) => {
        if (!entries.has(name)) required.entries.add(name);
        return entries.get(name);
      },
      list: (directory) => {
        if (!lists.has(directory)) required.lists.add(directory);
        return lists.get(directory) ?? [];
      },
    });
    if (required.entries.size + required.lists.size === 0) return result;
    for (const name of required.entries) entries.set(name, await source.entry(name));
    for (const name of required.lists) lists.set(name, await source.list(name));
  }
}
