import { readFile } from 'node:fs/promises';
import type { NodeConfig } from '../../machineconfig/node-config.ts';
import { resolveInRoot } from '../files/resolve-in-root.ts';
import { ignoreMissing } from '../files/tree-entry.ts';
import type { PasswordFields } from '../host/host.ts';
import type { Drift } from './drift/drift.ts';

/** One password to set, and what was there before. */
export interface PasswordChange {
  readonly user: string;
  readonly before: string;
  readonly after: string;
}

/** A password hash can't be put where it belongs. The message has no hash. */
export class PasswordError extends Error {
  override readonly name = 'PasswordError';
}

export const SHADOW = '/etc/shadow';
/** No password fits: what MCO leaves behind when a config no longer has a hash (`deconfigureAbsentUsers`). */
const NO_PASSWORD = '*';

type Hashes = Pick<NodeConfig, 'passwordHashes'>;

/**
 * @returns the fields of all users of /etc/passwd; those of the OS under /usr/lib (nss-altfiles) can't be given a
 *   password.
 * @throws PasswordError when there is no shadow file: hashes would stand where everybody reads them.
 */
export async function readPasswordFields(root: string): Promise<PasswordFields> {
  const shadow = await linesOf(root, SHADOW);
  if (shadow === undefined) {
    throw new PasswordError(`${SHADOW}: is not there, and a password hash may stand nowhere else`);
  }
  const fields = new Map(shadow.map(([user = '', field = '']) => [user, field]));
  const users = (await linesOf(root, '/etc/passwd')) ?? [];
  return new Map(users.map(([user = '']) => [user, fields.get(user) ?? NO_PASSWORD]));
}

/**
 * What a write has to do about passwords. A user whom the tree doesn't know is skipped, as MCO does
 * (`SetPasswordHash`); one who is in neither config keeps what they have.
 *
 * @param fields what the tree has.
 * @returns the changes, and what somebody else changed that they would overwrite.
 * @throws PasswordError for an invalid hash.
 */
export function planPasswords(
  { from, to }: { readonly from: Hashes; readonly to: Hashes },
  fields: PasswordFields,
): { readonly changes: readonly PasswordChange[]; readonly foreign: readonly Drift[] } {
  const changes: PasswordChange[] = [];
  const foreign: Drift[] = [];
  for (const user of [...new Set([...from.passwordHashes.keys(), ...to.passwordHashes.keys()])].sort()) {
    const before = fields.get(user);
    const after = to.passwordHashes.get(user) ?? NO_PASSWORD;
    assertHash(user, after);
    if (before === undefined || before === after) continue;
    changes.push({ user, before, after });
    const written = from.passwordHashes.get(user);
    if (written !== undefined && written !== before) foreign.push(driftOf(user));
  }
  return { changes, foreign };
}

/** @returns the users whose password is another than the config's. */
export function passwordDrifts({ passwordHashes }: Hashes, fields: PasswordFields): readonly Drift[] {
  return [...passwordHashes]
    .filter(([user, hash]) => (fields.get(user) ?? hash) !== hash)
    .map(([user]) => driftOf(user));
}

/** @returns what undoes changes where nobody has changed the same password since. */
export function fieldsBefore(changes: readonly PasswordChange[], fields: PasswordFields): PasswordFields {
  const ours = changes.filter(({ user, after }) => fields.get(user) === after);
  return new Map(ours.map(({ user, before }) => [user, before]));
}

function driftOf(user: string): Drift {
  return { path: SHADOW, what: 'content', message: `${SHADOW}: user ${user} has another password` };
}

/** A colon or line break would make other fields of it, or other users' (shadow(5)). */
function assertHash(user: string, hash: string): void {
  if (!/^[\x21-\x39\x3b-\x7e]*$/.test(hash)) {
    throw new PasswordError(
      `password hash of user ${user}: has a colon, white space or a character beyond ASCII; expected what crypt(3) returns`,
    );
  }
}

async function linesOf(root: string, name: string): Promise<string[][] | undefined> {
  const place = await resolveInRoot(root, name);
  const text = place === undefined ? undefined : await readFile(place, 'utf8').catch(ignoreMissing);
  return text
    ?.split('\n')
    .filter((line) => line !== '')
    .map((line) => line.split(':'));
}
