import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { NodeConfig, NodeUnit } from '../../machineconfig/node-config.ts';
import { unitLinks } from '../../machineconfig/unit-links.ts';
import type { Attributes } from '../host-files/host-directory.ts';
import { HostTree, type TreeRoots } from '../host-files/host-tree.ts';
import { resolveInRoot } from '../tree/resolve-in-root.ts';
import { readTreeEntry, type TreeEntry } from '../tree/tree-entry.ts';
import { type Account, type Accounts, ownerIds, readAccounts } from './accounts.ts';
import { HASH_UP_TO } from './write-target.ts';

/** What a config wants at one path. */
export interface Desired {
  /** Nothing: the path must not be there, as the links of a disabled unit. */
  readonly entry: TreeEntry | undefined;
  /** A file's bytes. */
  readonly contents?: Uint8Array;
  /** The path that a hard link shares its inode with. */
  readonly hardLinkTo?: string;
  /** How parents that are missing are made. */
  readonly parents: Attributes;
}

/** By absolute path. */
export type DesiredTree = ReadonlyMap<string, Desired>;

const UNIT_DIRECTORY = '/etc/systemd/system';
const OS_UNIT_DIRECTORY = '/usr/lib/systemd/system';
const ROOT_ONLY = { uid: 0, gid: 0 };
/** What MCO makes missing parents with (`defaultDirectoryPermissions`). */
const PARENTS: Attributes = { mode: 0o755, ...ROOT_ONLY };

/**
 * What a config wants on a node's disk, path by path: names of owners and homes looked up in the tree itself, units as
 * files, drop-ins and links.
 *
 * SSH keys go to `~/.ssh/authorized_keys.d/ignition` (MCO `RHCOSDefaultSSHKeyPath`); those of a user that the node
 * doesn't know are left out, as MCO leaves them (`updateSSHKeys`).
 *
 * @throws UnknownAccountError for a file's owner that the tree doesn't know.
 */
export async function desiredTree(target: TreeRoots, config: NodeConfig): Promise<DesiredTree> {
  const accounts = await readAccounts(target.root);
  const tree = new Map<string, Desired>();
  for (const directory of config.directories.values()) {
    const ids = ownerIds(accounts, directory);
    tree.set(directory.path, {
      entry: { kind: 'directory', mode: directory.mode, ...ids },
      parents: PARENTS,
    });
  }
  for (const file of config.files.values()) {
    tree.set(file.path, desiredFile(file.contents, { mode: file.mode, ...ownerIds(accounts, file) }));
  }
  for (const unit of config.units.values()) addUnit(tree, unit);
  const { links, removals } = await linksOfUnits(target, [...config.units.values()]);
  for (const name of removals) tree.set(name, { entry: undefined, parents: PARENTS });
  for (const link of links) tree.set(link.path, desiredLink(link.target, ROOT_ONLY));
  addKeys(tree, config.sshKeys, accounts);
  for (const link of config.links.values()) {
    const desired = link.hard
      ? await desiredHardLink(target, link.target, tree)
      : desiredLink(link.target, ownerIds(accounts, link));
    tree.set(link.path, desired);
  }
  return tree;
}

function desiredFile(contents: Uint8Array, attributes: Attributes, parents: Attributes = PARENTS): Desired {
  const sha256 = createHash('sha256').update(contents).digest('hex');
  return { entry: { kind: 'file', sha256, ...attributes }, contents, parents };
}

function desiredLink(target: string, ids: { readonly uid: number; readonly gid: number }): Desired {
  return { entry: { kind: 'symlink', target, ...ids }, parents: PARENTS };
}

/** A hard link is as its target is, be that the config's or the node's. */
async function desiredHardLink(target: TreeRoots, hardLinkTo: string, tree: DesiredTree): Promise<Desired> {
  const own = tree.get(hardLinkTo)?.entry;
  if (own !== undefined) return { entry: own, hardLinkTo, parents: PARENTS };
  await using host = new HostTree(target);
  const { name, missingParents } = await host.locate(hardLinkTo);
  const entry = missingParents.length > 0 ? undefined : await host.entry(name, HASH_UP_TO);
  return { entry, hardLinkTo, parents: PARENTS };
}

/** MCO skips a unit or drop-in without content (`writeUnit`, `writeDropins`). */
function addUnit(tree: Map<string, Desired>, unit: NodeUnit): void {
  const attributes = { mode: 0o644, ...ROOT_ONLY };
  for (const [name, contents] of unit.dropins) {
    if (contents === '') continue;
    tree.set(`${UNIT_DIRECTORY}/${unit.name}.d/${name}`, desiredFile(Buffer.from(contents), attributes));
  }
  if (unit.masked || unit.contents === undefined || unit.contents === '') return;
  tree.set(`${UNIT_DIRECTORY}/${unit.name}`, desiredFile(Buffer.from(unit.contents), attributes));
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

/** The text of a unit decides its links, and the units that its Also= names decide theirs: read until no more are asked for. */
async function linksOfUnits(
  target: TreeRoots,
  units: readonly NodeUnit[],
): Promise<ReturnType<typeof unitLinks>> {
  const texts = new Map<string, string | undefined>();
  for (;;) {
    const required = new Set<string>();
    const links = unitLinks(units, (name) => {
      if (!texts.has(name)) required.add(name);
      return texts.get(name);
    });
    if (required.size === 0) return links;
    for (const name of required) texts.set(name, await unitText(target.root, name));
  }
}

async function unitText(root: string, name: string): Promise<string | undefined> {
  for (const directory of [UNIT_DIRECTORY, OS_UNIT_DIRECTORY]) {
    const place = await resolveInRoot(root, `${directory}/${name}`);
    // A link is an alias or a mask, and no unit's own text.
    if (place === undefined || (await readTreeEntry(place))?.kind !== 'file') continue;
    return readFile(place, 'utf8');
  }
  return undefined;
}
