import { posix } from 'node:path';
import type { EffectiveAction } from '../api/disruption-action.ts';
import type { ClusterPolicies } from '../api/disruption-policy.ts';
import { fixedLength, matchesPattern } from './path-pattern.ts';

export interface MatchedPolicy {
  /** Names the policy in the cause of an action. */
  readonly rule: string;
  /** One list for each policy that decides: more than one, where several patterns are equally specific. */
  readonly actions: readonly (readonly EffectiveAction[])[];
  /** Whether it is an admin's, which nothing overrides; a default can be overridden by the owner of a file. */
  readonly byAdmin: boolean;
}

interface Policy {
  readonly actions: readonly EffectiveAction[];
  readonly source?: 'Admin';
  /** The name of the one of spec.shale that it is from. */
  readonly policy?: string;
}

interface FilePolicy extends Policy {
  readonly path: string;
}

function matched({ actions, source, policy }: Policy, subject: string): MatchedPolicy {
  const byAdmin = source === 'Admin';
  const name = policy === undefined ? '' : ` (${policy})`;
  return {
    rule: `${byAdmin ? 'policy' : 'default policy'} for ${subject}${name}`,
    actions: [actions],
    byAdmin,
  };
}

/**
 * The policy of a file: its own path's, or that of a directory above it, or a pattern that matches it. Its own path's
 * wins; then the longest text, where a pattern is as long as what precedes its first wildcard. So `/etc/foo/` beats
 * `/etc/foo`, and `/etc/foo` beats `/etc/**`. Of equally long ones all count, so that none is weakened by another.
 *
 * Among plain paths this is MCO's rule (pkg/daemon/update.go): `/` alone matches nothing. `/etc//foo` is `/etc/foo`.
 */
export function policyOfFile(policies: ClusterPolicies, path: string): MatchedPolicy | undefined {
  const plain = longestOf((policies.files ?? []).filter((policy) => covers(policy.path, path)));
  if (plain !== undefined && posix.normalize(plain.path) === path) return matched(plain, plain.path);
  const patterns = mostSpecific((policies.patterns ?? []).filter((each) => matchesPattern(each.path, path)));
  const [length = 0] = patterns.map((each) => fixedLength(each.path));
  const deciding = [
    ...(plain !== undefined && plain.path.length >= length ? [plain] : []),
    ...(plain === undefined || plain.path.length <= length ? patterns : []),
  ].map((policy) => matched(policy, policy.path));
  return deciding.length === 0
    ? undefined
    : {
        rule: inOneRule(deciding.map(({ rule }) => rule)),
        actions: deciding.flatMap(({ actions }) => actions),
        byAdmin: deciding.some(({ byAdmin }) => byAdmin),
      };
}

/** A cause has room for a few of the longest paths. */
const NAMED_RULES = 3;

function inOneRule(rules: readonly string[]): string {
  const more = rules.length > NAMED_RULES ? [`${rules.length - NAMED_RULES} more`] : [];
  return [...rules.slice(0, NAMED_RULES), ...more].join(' and ');
}

function longestOf(policies: readonly FilePolicy[]): FilePolicy | undefined {
  return policies.reduce<FilePolicy | undefined>(
    (best, policy) => (best === undefined || policy.path.length > best.path.length ? policy : best),
    undefined,
  );
}

function mostSpecific(patterns: readonly FilePolicy[]): readonly FilePolicy[] {
  const longest = Math.max(...patterns.map(({ path }) => fixedLength(path)));
  return patterns.filter(({ path }) => fixedLength(path) === longest);
}

function covers(policyPath: string, path: string): boolean {
  // A slash at the end stays.
  const clean = posix.normalize(policyPath);
  if (clean === '/') return false;
  return path === clean || path.startsWith(clean.endsWith('/') ? clean : `${clean}/`);
}

/** The policy of a unit, by its exact name. */
export function policyOfUnit(policies: ClusterPolicies, name: string): MatchedPolicy | undefined {
  const policy = policies.units?.find((unit) => unit.name === name);
  return policy && matched(policy, `unit ${name}`);
}

/** The policy of SSH keys; MCO puts a changed password hash under it too. */
export function policyOfSshKey(policies: ClusterPolicies): MatchedPolicy | undefined {
  return policies.sshkey && matched(policies.sshkey, 'SSH keys');
}
