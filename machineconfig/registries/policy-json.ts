import type { RegistrySources } from './registry-sources.ts';

type Requirement = { readonly type: 'reject' | 'insecureAcceptAnything' };

const reject: readonly Requirement[] = [{ type: 'reject' }];
const accept: readonly Requirement[] = [{ type: 'insecureAcceptAnything' }];

/** The `atomic` transport takes no scope of three or more segments behind the registry (MCO, updatePolicyJSON). */
const ATOMIC_SEGMENTS = 3;

/**
 * Writes a policy.json (containers-policy.json(5)): blocked scopes are rejected, or everything but the allowed ones is.
 *
 * @returns the file's text; undefined where nothing is blocked or allowed, and the distribution's own file stays.
 */
export function formatPolicyJson({ blocked, allowed }: RegistrySources): string | undefined {
  if (blocked.length === 0 && allowed.length === 0) return undefined;
  const scopes = [
    ...allowed.map((scope) => [scope, accept] as const),
    ...blocked.map((scope) => [scope, reject] as const),
  ].sort(([a], [b]) => (a < b ? -1 : 1));
  const atomic = scopes.filter(([scope]) => scope.split('/').length <= ATOMIC_SEGMENTS);
  const policy = {
    default: allowed.length > 0 ? reject : accept,
    transports: {
      atomic: Object.fromEntries(atomic),
      docker: Object.fromEntries(scopes),
      // Images of a local engine came past no registry.
      'docker-daemon': { '': accept },
    },
  };
  return `${JSON.stringify(policy, undefined, 2)}\n`;
}
