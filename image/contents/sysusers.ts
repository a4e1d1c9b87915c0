import type { FileFacts } from './file-facts.ts';
import { statementsOf } from './statements.ts';

type DeclaredAccount = Extract<FileFacts, { readonly kind: 'sysusers' }>['accounts'][number];

/** `u name id`, `u! name id` or `g name id` (sysusers.d(5)); ranges and memberships have no account of their own. */
const LINE = /^(u!?|g)\s+("[^"]*"|'[^']*'|\S+)(?:\s+("[^"]*"|'[^']*'|\S+))?/;

/** @param text of a file of sysusers.d. @returns the accounts that it declares. */
export function sysusersAccounts(text: string): readonly DeclaredAccount[] {
  return statementsOf(text).flatMap((line): DeclaredAccount[] => {
    const [, type = '', name = '', id = '-'] = LINE.exec(line) ?? [];
    if (name === '') return [];
    return [{ type: type === 'g' ? 'group' : 'user', name: unquoted(name), id: unquoted(id) }];
  });
}

function unquoted(field: string): string {
  return /^["']/.test(field) ? field.slice(1, -1) : field;
}

/** The accounts of an image: numbers by name, and names whose numbers the first boot chooses. */
export interface KnownAccounts {
  readonly users: ReadonlyMap<string, number>;
  readonly groups: ReadonlyMap<string, number>;
  /** Users and groups that `-` or the owner of a path decides on, in order. */
  readonly allocated: readonly string[];
}

/**
 * Adds the accounts that systemd-sysusers creates at boot. One that passwd(5) has stays as it is, and of two
 * declarations the first counts (sysusers.d(5)).
 *
 * @param declared in the order of their files.
 */
export function withDeclared(
  { users, groups }: Pick<KnownAccounts, 'users' | 'groups'>,
  declared: readonly DeclaredAccount[],
): KnownAccounts {
  const all = { user: new Map(users), group: new Map(groups) };
  const allocated = { user: new Set<string>(), group: new Set<string>() };
  const declare = (type: DeclaredAccount['type'], name: string, id: string) => {
    if (all[type].has(name) || allocated[type].has(name)) return;
    if (/^\d+$/.test(id)) all[type].set(name, Number(id));
    else allocated[type].add(name);
  };
  const seen = new Set<string>();
  for (const { type, name, id } of declared) {
    if (seen.has(`${type} ${name}`)) continue;
    seen.add(`${type} ${name}`);
    const [own = '', group] = id.split(':');
    declare(type, name, own);
    // A user has a group of its name and number, unless another one is named, which has to exist.
    if (type === 'user' && group === undefined) declare('group', name, own);
  }
  const names = [...new Set([...allocated.user, ...allocated.group])].sort();
  return { users: all.user, groups: all.group, allocated: names };
}
