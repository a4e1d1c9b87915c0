import { posix } from 'node:path';
import { nodePaths } from '../../api/names.ts';
import type { NodeConfig, Owner } from '../../machineconfig/node-config.ts';
import { type Difference, formatContents, type Listing } from './listing.ts';
import { formatAttributes } from './tree-item.ts';

/** What is made of a parent that is missing. */
const NEW_PARENT = `directory ${formatAttributes({ mode: 0o755, uid: 0, gid: 0 })}`;

/**
 * What one of both modes has for its own work, and the other doesn't: its records, how keys come to sshd, which presets
 * an image has.
 */
const OWN = [
  nodePaths.state,
  '/usr/share/shale',
  nodePaths.tmpfiles,
  '/etc/systemd/system-preset/20-shale.preset',
  nodePaths.sshdConfig,
  nodePaths.authorizedKeysDirectory,
  nodePaths.kernelArguments,
  ...['/var/home/core', '/var/roothome'].map((home) => `${home}/.ssh`),
];

/**
 * @returns a listing without what is a mode's own, and without directories that only that needs. @param base what was
 * there before.
 */
export function comparable(listing: Listing, base: Listing): Listing {
  const isOwn = (path: string) => OWN.some((own) => path === own || path.startsWith(`${own}/`));
  const isWayToOwn = (path: string, line: string) =>
    line === NEW_PARENT && !base.has(path) && OWN.some((own) => own.startsWith(`${path}/`));
  return new Map([...listing].filter(([path, line]) => !isOwn(path) && !isWayToOwn(path, line)));
}

/**
 * What a config and a base make of a node, by nothing but their own words: what is named is as the config has it,
 * parents that were missing are root's, 0755, and everything else is as it was. Units are for systemctl to judge.
 *
 * @param listing of the node afterwards. @param before of the node before.
 */
export function againstConfig(listing: Listing, before: Listing, config: NodeConfig): readonly Difference[] {
  const wanted = wantedBy(listing, config);
  const isNamed = (path: string) =>
    [...wanted.keys()].some((name) => path === name || path.startsWith(`${name}/`));
  const isOnTheWay = (path: string) => [...wanted.keys()].some((name) => name.startsWith(`${path}/`));
  const isOfUnits = (path: string) => config.units.size > 0 && path.startsWith('/etc/systemd/system/');
  const found: Difference[] = [];
  for (const [path, expected] of wanted) {
    const is = listing.get(path);
    if (is === undefined || !is.startsWith(expected)) found.push({ path, expected, found: is });
  }
  for (const path of new Set([...before.keys(), ...listing.keys()])) {
    const [was, is] = [before.get(path), listing.get(path)];
    if (isNamed(path) || isOfUnits(path) || withoutNames(was) === withoutNames(is)) continue;
    if (was === undefined && isOnTheWay(path) && is === NEW_PARENT) continue;
    // What was in the way of something that is named.
    if (isOnTheWay(path) && was !== undefined && !was.startsWith('directory') && is === NEW_PARENT) continue;
    found.push({ path, expected: was ?? '(nothing)', found: is });
  }
  return found;
}

/** A config may take one of a file's names for another file. */
function withoutNames(line: string | undefined): string | undefined {
  return line?.replace(/, the same file as .*/, '');
}

/** @returns how the listing has to begin at each path that a config names, by its real place. */
function wantedBy(listing: Listing, config: NodeConfig): ReadonlyMap<string, string> {
  const wanted = new Map<string, string>();
  for (const { path, mode, user, group, contents } of config.files.values()) {
    const attributes = formatAttributes({ mode, ...idsOf({ user, group }) });
    wanted.set(realPlace(listing, path), `file ${attributes} ${formatContents(contents)}`);
  }
  for (const { path, mode, user, group } of config.directories.values()) {
    wanted.set(
      realPlace(listing, path),
      `directory ${formatAttributes({ mode, ...idsOf({ user, group }) })}`,
    );
  }
  for (const { path, target, hard, user, group } of config.links.values()) {
    const { uid, gid } = idsOf({ user, group });
    const entry = hard
      ? withoutNames(listing.get(realPlace(listing, target)))
      : `symlink ${uid}:${gid} -> ${target}`;
    wanted.set(realPlace(listing, path), entry ?? `a hard link to ${target}`);
  }
  return wanted;
}

/** The users of every base (topics.ts). */
const IDS: Readonly<Record<string, number>> = { root: 0, core: 1000, svc: 998 };

function idsOf({ user, group }: { readonly user: Owner; readonly group: Owner }): {
  uid: number;
  gid: number;
} {
  const id = (owner: Owner) => ('id' in owner ? owner.id : (IDS[owner.name] ?? -1));
  return { uid: id(user), gid: id(group) };
}

/** @returns the name without links that a tree has for a path, as a process would find it that is chrooted there. */
function realPlace(listing: Listing, path: string): string {
  const pending = path.split('/').filter((part) => part !== '');
  let current = '/';
  for (let links = 0; links <= 40; ) {
    const step = pending.shift();
    if (step === undefined) return current;
    const next = posix.join(current, step);
    const target = pending.length === 0 ? undefined : linkTarget(listing.get(next));
    if (target === undefined) {
      current = next;
      continue;
    }
    links += 1;
    pending.unshift(...target.split('/').filter((part) => part !== '' && part !== '.'));
    if (target.startsWith('/')) current = '/';
  }
  return path;
}

function linkTarget(line: string | undefined): string | undefined {
  return line?.startsWith('symlink ') === true ? line.slice(line.indexOf(' -> ') + ' -> '.length) : undefined;
}
