import { type FSWatcher, watch } from 'node:fs';
import path from 'node:path';
import type { Logger } from 'pino';
import { HostTree, rootOf, type TreeRoots } from '../../files/host-tree.ts';
import { desiredTree, type ManagedContent } from '../entries/desired-tree.ts';
import { locateContent } from '../entries/locate-content.ts';
import { SHADOW } from '../passwords.ts';

/** Names to look out for, by the directory that has them or would. */
export type WatchedNames = ReadonlyMap<string, ReadonlySet<string>>;

/** Several changes of one save are one change. */
const SETTLE_MS = 250;

/**
 * Watches names in directories (inotify). Only a hint: where the kernel refuses a watch, the next comparison still
 * finds the change.
 */
export class DriftWatch {
  readonly #onChange: () => void;
  readonly #log: Logger;
  #watchers: readonly FSWatcher[] = [];
  #settling: NodeJS.Timeout | undefined;

  /** @param onChange called once after changes, a moment after the last of them. */
  constructor(onChange: () => void, log: Logger) {
    this.#onChange = onChange;
    this.#log = log;
  }

  /**
   * Watches these names and no others. Changes are reported from now on, so that none is missed between this and a
   * comparison that follows.
   */
  watch(names: WatchedNames): void {
    const before = this.#watchers;
    this.#watchers = [...names].flatMap(([directory, wanted]) => this.#watch(directory, wanted));
    for (const watcher of before) watcher.close();
  }

  stop(): void {
    clearTimeout(this.#settling);
    this.watch(new Map());
  }

  #watch(directory: string, wanted: ReadonlySet<string>): FSWatcher[] {
    try {
      const watcher = watch(directory, { persistent: false }, (_event, name) => {
        // The directory's own name means a change of the directory; no name means a change that the kernel does not
        // name.
        if (name === null || wanted.has(name) || name === path.basename(directory)) this.#changed();
      });
      watcher.on('error', (error) => {
        this.#log.debug({ err: error, directory }, 'no longer watched');
        this.#changed();
      });
      return [watcher];
    } catch (error) {
      this.#log.warn({ err: error, directory }, 'can not be watched; changes are found by looking only');
      return [];
    }
  }

  #changed(): void {
    clearTimeout(this.#settling);
    this.#settling = setTimeout(this.#onChange, SETTLE_MS);
    this.#settling.unref();
  }
}

/**
 * @returns what to watch for content's paths to be as it has them: each path in its directory, and where that is not
 *   there, the first of its parents that is missing.
 */
export async function watchedNames(target: TreeRoots, content: ManagedContent): Promise<WatchedNames> {
  const names = new Map<string, Set<string>>();
  await using tree = new HostTree(target);
  const passwords = content.config.passwordHashes.size > 0 ? [SHADOW] : [];
  const paths = await locateContent(tree, await desiredTree(target, content));
  const locations = paths.map(({ location }) => location);
  for (const name of passwords) locations.push(await tree.find(name));
  for (const location of locations) {
    // A look reports a path that can't be reached.
    if (location === undefined) continue;
    const watched = location.missingParents[0] ?? location.name;
    const directory = path.join(rootOf(target, watched), path.posix.dirname(watched));
    names.set(directory, (names.get(directory) ?? new Set()).add(path.basename(watched)));
  }
  return names;
}
