import { outcomeOf } from '../../api/build-outcome.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { readTreeRecord, recordedBases } from '../../builder/steps/tree-of-base.ts';
import type { BaseContent } from '../../machineconfig/base-tree.ts';
import {
  builtBase,
  lookupsAround,
  type PoolLookups,
  type PoolTrees,
  pinnedBase,
  type RegistryAnswer,
} from '../../predict/image/base-lookup.ts';
import { requestedBase } from '../../predict/image/image-inputs.ts';
import type { OfflineCluster } from '../../predict/objects/offline-cluster.ts';
import { layeredRenderings } from '../../predict/objects/offline-rendering.ts';
import { askRegistry, type LookupAccess, type PoolRegistry } from './pool-registry.ts';

/** A record of the base image that a pool's next image is based on. */
export interface TreeRequest extends PoolRegistry {
  readonly pool: string;
  /** By digest, from a build that succeeded. */
  readonly record: string;
}

/**
 * @param after the cluster with the change. @param lookups what the tags of base images stand for.
 * @returns which records tell what pools' base images consist of: those that builds on the same base made. A container
 *   engine's image is another base, so its builds tell nothing.
 */
export function treeRequests(
  after: OfflineCluster,
  builds: readonly MachineOSBuild[],
  lookups: PoolLookups | undefined,
): readonly TreeRequest[] {
  return layeredRenderings(after).flatMap(({ pool, machineOSConfig: config, rendering: { rendered } }) => {
    const { baseImagePullSecret, renderedImagePushSecret, renderedImagePushSpec } = config.spec;
    const requested = requestedBase(config, rendered);
    if (requested === undefined) return [];
    const own = builds.filter(({ spec }) => spec.machineOSConfig.name === config.metadata.name);
    const built = builtBase(config, own, requested, []);
    const asked = lookups?.get(pool) ?? new Map();
    const known = lookupsAround(asked, built && { name: requested, base: built });
    const base = pinnedBase(requested, known.after);
    const onBase = own.filter(
      (build) => build.spec.baseImage === base && outcomeOf(build) === 'Succeeded' && !isEngineBuilt(build),
    );
    const record = recordedBases(onBase, renderedImagePushSpec)[0];
    const secrets = [baseImagePullSecret?.name, renderedImagePushSecret?.name];
    return record === undefined ? [] : [{ pool, record: record.image, secrets, rendered }];
  });
}

function isEngineBuilt({ status }: MachineOSBuild): boolean {
  return (
    status?.engineImage !== undefined || status?.instances?.some(({ engineImage }) => engineImage) === true
  );
}

/**
 * Reads the records, all at once.
 *
 * @throws {CommandError} for flags that can't be used; the reason of the signal.
 */
export async function readBaseTrees(
  requests: readonly TreeRequest[],
  access: LookupAccess,
  signal: AbortSignal,
): Promise<PoolTrees> {
  const answers = await Promise.all(
    requests.map(async (request) => [request.pool, await readTree(request, access, signal)] as const),
  );
  return new Map(answers);
}

async function readTree(
  { record, ...registry }: TreeRequest,
  access: LookupAccess,
  signal: AbortSignal,
): Promise<RegistryAnswer<BaseContent>> {
  const answer = await askRegistry(registry, access, signal, (client, bounded) =>
    readTreeRecord(client, { image: record }, bounded),
  );
  if (answer.kind === 'unknown') return answer;
  const { value } = answer;
  return value === undefined
    ? { kind: 'unknown', why: 'its record is not in the registry' }
    : { kind: 'answer', value };
}
