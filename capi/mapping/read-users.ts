import { z } from 'zod';
import { canonicalJson } from '../../machineconfig/canonical-json.ts';
import type { Json } from '../contract/machine-objects.ts';
import { templateProblem } from './cloud-init-template.ts';
import type { Writable } from './machine-parts.ts';

const Users = z.array(z.looseObject({ name: z.string() }));

const Keys = z.array(z.string());

interface UsersRead {
  readonly keys: ReadonlyMap<string, Writable<readonly string[]>>;
  /** Everything else of users: canonical JSON by field. */
  readonly rest: readonly (readonly [field: string, json: string])[];
}

/**
 * @param users `spec.users` of a KubeadmConfig.
 * @param nodeUser the only one whose keys a running node can change (machineconfig/reconcilable.ts).
 */
export function readUsers(users: Json | undefined, nodeUser: string): UsersRead {
  const parsed = Users.safeParse(users ?? []);
  const names = new Set(parsed.data?.map(({ name }) => name));
  if (!parsed.success || names.size < parsed.data.length) {
    return { keys: new Map(), rest: [['spec.users', canonicalJson(users)]] };
  }
  const rest = parsed.data.map(({ sshAuthorizedKeys, ...user }): [string, string] => [
    `spec.users[${user.name}]`,
    canonicalJson(user.name === nodeUser ? user : { ...user, sshAuthorizedKeys }),
  ]);
  const keys = parsed.data.find(({ name }) => name === nodeUser)?.['sshAuthorizedKeys'];
  const hasKeys = keys !== undefined && !(Array.isArray(keys) && keys.length === 0);
  return { keys: new Map(hasKeys ? [[nodeUser, readKeys(keys)]] : []), rest };
}

/** A line of authorized_keys is a key (sshd(8)). */
function readKeys(keys: unknown): Writable<readonly string[]> {
  const parsed = Keys.safeParse(keys);
  const areLines = parsed.data?.every((key) => key.trim() !== '' && !/[\r\n]/.test(key)) ?? false;
  const refused = (why: string) => ({ kind: 'refused', raw: canonicalJson(keys), why }) as const;
  if (!parsed.success || !areLines) return refused('a key is not one line of authorized_keys');
  const template = templateProblem(parsed.data.join('\n'));
  return template === undefined ? { kind: 'writable', value: parsed.data } : refused(template);
}
