import { readFile } from 'node:fs/promises';
import type { Owner } from '../../machineconfig/node-config.ts';
import { resolveInRoot } from '../tree/resolve-in-root.ts';
import { ignoreMissing } from '../tree/tree-entry.ts';

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
 * @returns its accounts (passwd(5), group(5)). An ostree system keeps those of its packages under /usr/lib (nss-altfiles);
 *   an account of /etc comes before one of the same name there.
 */
export async function readAccounts(root: string): Promise<Accounts> {
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

/** @returns numeric owner and group of a path. @throws UnknownAccountError naming the path when a name is unknown. */
export function ownerIds(
  accounts: Accounts,
  { path, user, group }: { readonly path: string; readonly user: Owner; readonly group: Owner },
): { readonly uid: number; readonly gid: number } {
  const uid = 'id' in user ? user.id : accounts.users.get(user.name)?.uid;
  if (uid === undefined) throw unknownAccount(path, 'user', user);
  const gid = 'id' in group ? group.id : accounts.groups.get(group.name);
  if (gid === undefined) throw unknownAccount(path, 'group', group);
  return { uid, gid };
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
