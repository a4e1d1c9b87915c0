import { by } from '../../api/order.ts';
import type { ScopePolicies, SigstoreRequirement } from './image-policies.ts';
import { isAtomicScope } from './read-policy-json.ts';
import type { RegistrySources } from './registry-sources.ts';

type Requirement = { readonly type: 'reject' | 'insecureAcceptAnything' } | SigstoreRequirement;
type Scopes = ReadonlyMap<string, readonly Requirement[]>;

const reject: readonly Requirement[] = [{ type: 'reject' }];
const accept: readonly Requirement[] = [{ type: 'insecureAcceptAnything' }];

/** The transport `atomic` takes no scope of three or more segments behind the registry (MCO, updatePolicyJSON). */
const ATOMIC_SEGMENTS = 3;

/**
 * Writes a policy.json (containers-policy.json(5)): blocked scopes are rejected, or everything but the allowed ones is,
 * and images that a policy covers need its signatures.
 *
 * @param namespace what the pods of one namespace need besides; absent: for every pull.
 * @returns the file's text; undefined where nothing of it is asked for, and the distribution's own file stays.
 */
export function formatPolicyJson(
  { blocked, allowed }: Pick<RegistrySources, 'blocked' | 'allowed'>,
  cluster: ScopePolicies,
  namespace: ScopePolicies = new Map(),
): string | undefined {
  if (blocked.length + allowed.length + cluster.size + namespace.size === 0) return undefined;
  const scopes = new Map<string, readonly Requirement[]>([
    ...allowed.map((scope) => [scope, accept] as const),
    ...blocked.map((scope) => [scope, reject] as const),
  ]);
  // What is allowed unsigned is not what a ClusterImagePolicy has signed; a namespace's policy asks for more of it.
  for (const [scope, requirements] of cluster) scopes.set(scope, requirements);
  for (const [scope, requirements] of namespace)
    scopes.set(scope, [...(scopes.get(scope) ?? []), ...requirements]);
  const policy = {
    default: allowed.length > 0 ? reject : accept,
    transports: {
      atomic: sorted(scopes, (scope) => scope.split('/').length <= ATOMIC_SEGMENTS && isAtomicScope(scope)),
      docker: sorted(scopes, () => true),
      // Images of a local engine don't come from a registry.
      'docker-daemon': { '': accept },
    },
  };
  return `${JSON.stringify(policy, undefined, 2)}\n`;
}

function sorted(scopes: Scopes, filter: (scope: string) => boolean): Record<string, readonly Requirement[]> {
  return Object.fromEntries([...scopes].filter(([scope]) => filter(scope)).sort(by(([scope]) => scope)));
}
