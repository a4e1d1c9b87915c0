import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { unitFiles } from '../../../machineconfig/configured-units.ts';
import { layeredFiles } from '../../../machineconfig/layered-files.ts';
import type { NodeConfig, Owner } from '../../../machineconfig/node-config.ts';
import { placeInImage } from '../../../machineconfig/place-in-image.ts';
import { type UnitLinks, unitLinks, unitLinksOfImage } from '../../../machineconfig/unit-links.ts';
import type { Attributes } from '../../files/host-directory.ts';
import { HostTree, type TreeRoots } from '../../files/host-tree.ts';
import { imageEtcIn } from '../../files/image-tree.ts';
import { resolveInRoot } from '../../files/resolve-in-root.ts';
import { ignoreMissing, type TreeEntry } from '../../files/tree-entry.ts';
import { type UnitSource, unitsIn, withUnits } from '../../files/units-in-tree.ts';
import type { Current } from '../../records/current.ts';
import { originalUnits } from './original-units.ts';

/** What a config wants at one path. */
export interface Desired {
  /** Nothing: the path must not be there, as the links of a disabled unit. */
  readonly entry: TreeEntry | undefined;
  /** A file's bytes. */
  readonly contents?: Uint8Array;
  /** The path that a hard link shares its inode with. */
  readonly hardLinkTo?: string;
  /** Why the owner is not known, as text: nothing can be as the config wants it (layered mode only). */
  readonly unknownOwner?: string | undefined;
  /** How parents that are missing are made. */
  readonly parents: Attributes;
}

/** By absolute path. */
export type DesiredTree = ReadonlyMap<string, Desired>;

/**
 * No config's file comes near it, and a larger one differs from a config's by its size alone: nobody reads a sparse
 * file of terabytes.
 */
export const HASH_UP_TO = 256 * 1024 * 1024;

const ROOT_ONLY = { uid: 0, gid: 0 };
/** What MCO makes missing parents with (`defaultDirectoryPermissions`). */
const PARENTS: Attributes = { mode: 0o755, ...ROOT_ONLY };

/** All that Shale manages on a node's disk, derived from the rendered config alone. */
export interface ManagedContent {
  /** How the config comes to the node: written by the daemon, or in an image. */
  readonly delivery: Current['mode'];
  readonly config: NodeConfig;
}

/**
 * What content has on a node's disk, path by path: names of owners and homes looked up in the tree itself, units as
 * files, drop-ins and links.
 *
 * In standard mode SSH keys go to `~/.ssh/authorized_keys.d/ignition` (MCO `RHCOSDefaultSSHKeyPath`); those of a user
 * that the node doesn't know are left out, as MCO leaves them (`updateSSHKeys`). In layered mode everything lies where
 * an image carries it (builder/layer/layer-content.ts).
 *
 * @throws UnknownAccountError for a file's owner that the tree doesn't know, in standard mode: in layered mode it is
 *   reported by `unknownOwner`, because the image is there already.
 */
export async function desiredTree(
  target: TreeRoots,
  { config, delivery }: ManagedContent,
): Promise<DesiredTree> {
  const accounts = await readAccounts(target.root);
  const owners = delivery === 'Standard' ? strictOwners(accounts) : lenientOwners(accounts);
  const tree = new Map<string, Desired>();
  for (const directory of config.directories.values()) {
    const { unknown, ...ids } = owners(directory);
    tree.set(directory.path, {
      entry: { kind: 'directory', mode: directory.mode, ...ids },
      parents: PARENTS,
      unknownOwner: unknown,
    });
  }
  for (const file of config.files.values()) {
    const { unknown, ...ids } = owners(file);
    const desired = desiredFile(file.contents, { mode: file.mode, ...ids });
    tree.set(file.path, { ...desired, unknownOwner: unknown });
  }
  if (delivery === 'Standard') await addWritten(tree, target, config, accounts);
  else await addCarried(tree, target, config);
  const links = [...config.links.values()];
  for (const link of links.filter(({ hard }) => !hard)) {
    const { unknown, ...ids } = owners(link);
    tree.set(link.path, { ...desiredLink(link.target, ids), unknownOwner: unknown });
  }
  // Each is as the file that it shares, which may be a symbolic link.
  for (const link of links.filter(({ hard }) => hard)) {
    tree.set(link.path, await desiredHardLink(target, config, { tree, hardLinkTo: link.target }));
  }
  return tree;
}

/** Units and keys as standard mode writes them. */
async function addWritten(
  tree: Map<string, Desired>,
  target: TreeRoots,
  config: NodeConfig,
  accounts: Accounts,
): Promise<void> {
  for (const unit of config.units.values()) {
    for (const [name, text] of unitFiles(unit)) tree.set(name, rootsFile(text));
  }
  addUnitLinks(tree, await withUnits(await originalUnits(target), (units) => unitLinks(config, units)));
  addKeys(tree, config.sshKeys, accounts);
}

/**
 * Units, keys and kernel arguments as an image carries them; its daemon adds the links of the base's units
 * (daemon/files/units-of-image.ts).
 */
async function addCarried(tree: Map<string, Desired>, target: TreeRoots, config: NodeConfig): Promise<void> {
  for (const [name, text] of layeredFiles(config)) tree.set(name, rootsFile(text));
  addUnitLinks(
    tree,
    await withUnits(await carriedUnits(target.root), (units) => unitLinksOfImage(config, units)),
  );
}

/**
 * The units of a tree, with the links that its image has and the tree has not: one that a config takes away is taken
 * away, whether it is there or was in the place of something else until now.
 */
async function carriedUnits(root: string): Promise<UnitSource> {
  const present = unitsIn(root);
  const image = unitsIn(root, await imageEtcIn(root));
  return { ...present, links: async () => new Map([...(await image.links()), ...(await present.links())]) };
}

function addUnitLinks(tree: Map<string, Desired>, { links, removals }: UnitLinks): void {
  for (const name of removals) tree.set(name, { entry: undefined, parents: PARENTS });
  for (const link of links) tree.set(link.path, desiredLink(link.target, ROOT_ONLY));
}

function rootsFile(text: string): Desired {
  return desiredFile(Buffer.from(text), { mode: 0o644, ...ROOT_ONLY });
}

function desiredFile(contents: Uint8Array, attributes: Attributes, parents: Attributes = PARENTS): Desired {
  const sha256 = createHash('sha256').update(contents).digest('hex');
  return { entry: { kind: 'file', sha256, ...attributes }, contents, parents };
}

function desiredLink(target: string, ids: { readonly uid: number; readonly gid: number }): Desired {
  return { entry: { kind: 'symlink', target, ...ids }, parents: PARENTS };
}

/**
 * A hard link is as its target is, be that the config's or the node's; undefined where there is none. By the paths that
 * the config has: what lies there by another name, locateContent finds.
 */
async function desiredHardLink(
  target: TreeRoots,
  { links }: NodeConfig,
  { tree, hardLinkTo }: { readonly tree: DesiredTree; readonly hardLinkTo: string },
): Promise<Desired> {
  let source = hardLinkTo;
  const passed = new Set<string>();
  for (let next = links.get(source); next?.hard === true; next = links.get(source)) {
    if (passed.has(source)) return { entry: undefined, hardLinkTo, parents: PARENTS };
    passed.add(source);
    source = next.target;
  }
  const own = tree.get(source)?.entry;
  if (own !== undefined) return { entry: own, hardLinkTo, parents: PARENTS };
  await using host = new HostTree(target);
  const location = await host.find(source);
  const entry = location === undefined ? undefined : await host.entry(location.name, HASH_UP_TO);
  return { entry, hardLinkTo, parents: PARENTS };
}

function addKeys(tree: Map<string, Desired>, sshKeys: NodeConfig['sshKeys'], { users }: Accounts): void {
  for (const [user, keys] of sshKeys) {
    const account = users.get(user);
    if (account === undefined) continue;
    const text = keys.map((key) => `${key}\n`).join('');
    tree.set(
      path.posix.join(account.home, '.ssh/authorized_keys.d/ignition'),
      desiredFile(Buffer.from(text), attributesOf(account, 0o600), attributesOf(account, 0o700)),
    );
  }
}

function attributesOf({ uid, gid }: Account, mode: number): Attributes {
  return { mode, uid, gid };
}

/** The users and groups that a tree itself knows, whatever the process that asks runs in. */
export interface Accounts {
  readonly users: ReadonlyMap<string, Account>;
  readonly groups: ReadonlyMap<string, number>;
}

export interface Account {
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
}

/** An owner is given by a name that the node does not know. */
export class UnknownAccountError extends Error {
  override readonly name = 'UnknownAccountError';
}

/**
 * @param root of the tree.
 * @returns its accounts (passwd(5), group(5)). An ostree system keeps those of its packages under /usr/lib
 *   (nss-altfiles); an account of /etc comes before one of the same name there.
 */
async function readAccounts(root: string): Promise<Accounts> {
  const lines = async (name: string): Promise<string[][]> => {
    const texts = [await textAt(root, `/usr/lib/${name}`), await textAt(root, `/etc/${name}`)];
    return texts.flatMap((text) => text.split('\n').map((line) => line.split(':')));
  };
  const users = new Map<string, Account>();
  for (const [name = '', , uid = '', gid = '', , home = ''] of await lines('passwd')) {
    if (isNumber(uid) && isNumber(gid)) users.set(name, { uid: Number(uid), gid: Number(gid), home });
  }
  const groups = new Map<string, number>();
  for (const [name = '', , gid = ''] of await lines('group')) {
    if (isNumber(gid)) groups.set(name, Number(gid));
  }
  return { users, groups };
}

interface OwnedPath {
  readonly path: string;
  readonly user: Owner;
  readonly group: Owner;
}

interface Ids {
  readonly uid: number;
  readonly gid: number;
}

/** @returns numeric owner and group of a path. @throws UnknownAccountError naming the path when a name is unknown. */
function strictOwners(accounts: Accounts): (owned: OwnedPath) => Ids & { readonly unknown?: undefined } {
  return ({ path, user, group }) => {
    const uid = 'id' in user ? user.id : accounts.users.get(user.name)?.uid;
    if (uid === undefined) throw unknownAccount(path, 'user', user);
    const gid = 'id' in group ? group.id : accounts.groups.get(group.name);
    if (gid === undefined) throw unknownAccount(path, 'group', group);
    return { uid, gid };
  };
}

/** As strictOwners, but an unknown name is returned beside what the image has instead. */
function lenientOwners(
  accounts: Accounts,
): (owned: OwnedPath) => Ids & { readonly unknown?: string | undefined } {
  const strict = strictOwners(accounts);
  return (owned) => {
    try {
      return strict(owned);
    } catch (error) {
      if (!(error instanceof UnknownAccountError)) throw error;
      return { ...ownersInImage(owned), unknown: error.message };
    }
  };
}

/** What a layer has for a name that its base doesn't know. */
function ownersInImage({ path, user, group }: OwnedPath): Ids {
  if (placeInImage(path).kind !== 'image') return ROOT_ONLY;
  return { uid: 'id' in user ? user.id : 0, gid: 'id' in group ? group.id : 0 };
}

function unknownAccount(path: string, kind: 'user' | 'group', owner: Owner): UnknownAccountError {
  const name = 'name' in owner ? owner.name : owner.id;
  const file = kind === 'user' ? 'passwd' : 'group';
  return new UnknownAccountError(
    `${path}: ${kind} ${name} is neither in /etc/${file} nor in /usr/lib/${file} of the node; give a number, or a name the node knows`,
  );
}

function isNumber(text: string): boolean {
  return /^\d+$/.test(text);
}

async function textAt(root: string, name: string): Promise<string> {
  const place = await resolveInRoot(root, name);
  return (place === undefined ? undefined : await readFile(place, 'utf8').catch(ignoreMissing)) ?? '';
}
