import { posix } from 'node:path';
import type { EffectiveAction } from '../api/disruption-action.ts';
import type { ClusterPolicies } from '../api/machine-configuration.ts';

export interface MatchedPolicy {
  /** Names the policy in the cause of an action. */
  readonly rule: string;
  readonly actions: readonly EffectiveAction[];
  /** Whether it is an admin's, which nothing overrides; a default can be overridden by the owner of a file. */
  readonly byAdmin: boolean;
}

interface Policy {
  readonly actions: readonly EffectiveAction[];
  readonly source?: 'Admin';
}

function matched({ actions, source }: Policy, subject: string): MatchedPolicy {
  const byAdmin = source === 'Admin';
  return { rule: `${byAdmin ? 'policy' : 'default policy'} for ${subject}`, actions, byAdmin };
}

/**
 * The policy of a file: its own path's, or that of a directory above it. The longest text wins, so that `/etc/foo/`
 * beats `/etc/foo`; `/` alone matches nothing, and there are no wildcards (MCO, pkg/daemon/update.go). `/etc//foo` is
 * `/etc/foo`.
 */
export function policyOfFile(policies: ClusterPolicies, path: string): MatchedPolicy | undefined {
  const matching = (policies.files ?? []).filter((policy) => covers(policy.path, path));
  const longest = matching.reduce<(typeof matching)[number] | undefined>(
    (best, policy) => (best === undefined || policy.path.length > best.path.length ? policy : best),
    undefined,
  );
  return longest && matched(longest, longest.path);
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
