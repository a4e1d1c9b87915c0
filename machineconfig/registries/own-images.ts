import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import type { Problem } from '../problem.ts';
import type { ScopePolicies, SigstoreRequirement } from './policy-json.ts';
import { isScopeWithin, withoutReference } from './scopes.ts';

/** The layered images of a cluster, which its builder pushes and signs. */
export interface LayeredImages {
  /** Where they are pushed, by pool, such as `registry.example.com/os/worker:latest`. */
  readonly byPool: ReadonlyMap<string, string>;
  /** Public keys in PEM that they are signed by; none: signing is disabled. Undefined: unknown. */
  readonly keys: readonly string[] | undefined;
}

/** @returns where layered images are pushed, by pool. */
export function pushSpecsByPool(machineOSConfigs: readonly MachineOSConfig[]): ReadonlyMap<string, string> {
  return new Map(
    machineOSConfigs.map(({ spec }) => [spec.machineConfigPool.name, spec.renderedImagePushSpec]),
  );
}

/** @returns the repositories of the layered images of every pool. */
export function layeredRepositories({ byPool }: LayeredImages): readonly string[] {
  return [...new Set([...byPool.values()].map(withoutReference))];
}

/**
 * Finds a signature policy that the layered images of a pool can't meet. Its nodes could never take another image,
 * and so never the one without the policy.
 */
export function unmeetable(
  pool: string,
  { byPool, keys }: LayeredImages,
  policies: ScopePolicies,
): Problem | undefined {
  const pushed = byPool.get(pool);
  if (pushed === undefined) return undefined;
  const repository = withoutReference(pushed);
  const [scope, requirements] = mostSpecific(repository, policies) ?? [];
  const why = requirements?.map((each) => whyUnmet(each, keys)).find((each) => each !== undefined);
  if (scope === undefined || why === undefined) return undefined;
  return {
    path: `ClusterImagePolicies for ${JSON.stringify(scope)}`,
    reason: `would refuse every image of pool ${pool}, which ${repository} has, because ${why}`,
    expected: `narrower scopes, or a ClusterImagePolicy for ${repository} with the public key of Shale's builder`,
  };
}

/** Images are pulled by digest, which no scope with a tag is for. */
function mostSpecific(
  repository: string,
  policies: ScopePolicies,
): readonly [string, readonly SigstoreRequirement[]] | undefined {
  const rank = (scope: string) => (scope.startsWith('*.') ? 0 : 1000) + scope.length;
  return [...policies]
    .filter(([scope]) => withoutReference(scope) === scope && isScopeWithin(repository, scope))
    .sort(([a], [b]) => rank(b) - rank(a))[0];
}

/** What the daemon verifies before it stages an image (containers-policy.json(5)): a key, and nothing else. */
function whyUnmet(
  { keyData, fulcio, pki, rekorPublicKeyData, signedIdentity }: SigstoreRequirement,
  keys: readonly string[] | undefined,
): string | undefined {
  if (fulcio !== undefined || pki !== undefined) return 'they are signed by a key, without a certificate';
  if (rekorPublicKeyData !== undefined) return 'their signatures are in no log of Rekor';
  if (!['matchRepoDigestOrExact', 'matchRepository'].includes(signedIdentity.type))
    return 'their signatures name the repository itself';
  if (keys === undefined) return undefined;
  if (keys.length === 0) return 'signing is disabled';
  const required = Buffer.from(keyData ?? '', 'base64')
    .toString('utf8')
    .trim();
  return keys.some((key) => key.trim() === required)
    ? undefined
    : "another key than the builder's is required";
}
