import type { MachineOSConfig } from './machine-os-config.ts';
import { labels } from './names.ts';
import { byCodeUnits } from './order.ts';
import { repositoryOf } from './references.ts';

/** That a pool has an image in a repository. */
export interface RepositoryUse {
  readonly pool: string;
  /** An image or a tag of it. */
  readonly image: string;
  /** RFC 3339 */
  readonly since: string;
}

/**
 * Whose repository a MachineOSConfig names. A repository is one pool's: what is signed for it, and the credentials for
 * it, would otherwise be those of anyone who may edit any MachineOSConfig. The layering switch may give several pools
 * the same one.
 *
 * @param configs every MachineOSConfig.
 * @param uses returns what is recorded of images, by the operator or by the builder; asked only if pools name the same
 *   repository.
 * @returns the name of the other pool; undefined for the pool's own.
 */
export function otherOwner(
  config: MachineOSConfig,
  configs: readonly MachineOSConfig[],
  uses: () => readonly RepositoryUse[],
): string | undefined {
  const repository = repositoryOf(config.spec.renderedImagePushSpec);
  const own = poolOf(config);
  // The switch replaces and deletes what has its label and is not as it says (opt-in/machine-os-configs.ts).
  if (isOfSwitch(config)) return undefined;
  const rivals = configs.filter(
    (other) =>
      poolOf(other) !== own &&
      other.metadata.deletionTimestamp === undefined &&
      repositoryOf(other.spec.renderedImagePushSpec) === repository,
  );
  if (rivals.length === 0) return undefined;
  const ofSwitch = rivals.find(isOfSwitch);
  if (ofSwitch !== undefined) return poolOf(ofSwitch);
  const known = uses();
  const claimants = [config, ...rivals].map((each) => ({
    pool: poolOf(each),
    used: firstUse(poolOf(each), repository, known),
    created: each.metadata.creationTimestamp ?? '',
  }));
  const [owner] = claimants.toSorted(
    (a, b) =>
      byCodeUnits(a.used ?? NEVER, b.used ?? NEVER) ||
      byCodeUnits(a.created, b.created) ||
      byCodeUnits(a.pool, b.pool),
  );
  return owner?.pool === own ? undefined : owner?.pool;
}

/** After every time. */
const NEVER = '~';

function firstUse(pool: string, repository: string, uses: readonly RepositoryUse[]): string | undefined {
  return uses
    .filter((use) => use.pool === pool && repositoryOf(use.image) === repository)
    .map(({ since }) => since)
    .sort()[0];
}

function poolOf({ spec }: MachineOSConfig): string {
  return spec.machineConfigPool.name;
}

function isOfSwitch({ metadata }: MachineOSConfig): boolean {
  return metadata.labels?.[labels.madeBySwitch] === 'true';
}

/** @returns what is wrong, for who names another pool's repository. */
export function otherOwnerMessage({ spec, metadata }: MachineOSConfig, owner: string): string {
  return `repository ${repositoryOf(spec.renderedImagePushSpec)} belongs to pool ${owner}; name another one in renderedImagePushSpec of MachineOSConfig ${metadata.name}`;
}
