import type { MachineConfig } from '../../api/machine-config.ts';
import { isByDigest } from '../../api/references.ts';
import { imagesByArchitecture } from '../../image/append.ts';
import { parseManifest } from '../../image/manifest.ts';
import { parseReference } from '../../image/reference.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import type { BaseLookup, PoolLookups } from '../../predict/image/base-lookup.ts';
import { requestedBase } from '../../predict/image/image-inputs.ts';
import type { OfflineCluster } from '../../predict/objects/offline-cluster.ts';
import { layeredRenderings } from '../../predict/objects/offline-rendering.ts';
import { askRegistry, type LookupAccess } from './pool-registry.ts';

/** The name of a base image, as the builder looks it up for a pool. */
export interface BaseRequest {
  readonly pool: string;
  /** The base image as requested. */
  readonly name: string;
  /** The Secret with the credentials, in Shale's namespace. */
  readonly secret: string | undefined;
  /** The pool's rendered config, which has the mirrors. */
  readonly rendered: MachineConfig;
}

/** @returns the base images that the pools request before a change and after it; those by digest need no look-up. */
export function baseRequests(before: OfflineCluster, after: OfflineCluster): readonly BaseRequest[] {
  return [before, after].flatMap(layeredRenderings).flatMap(({ pool, machineOSConfig, rendering }) => {
    const { rendered } = rendering;
    const name = requestedBase(machineOSConfig, rendered);
    if (name === undefined || isByDigest(name)) return [];
    return [{ pool, name, secret: machineOSConfig.spec.baseImagePullSecret?.name, rendered }];
  });
}

/**
 * Asks registries what base images' names stand for, all at once, as the builder asks them.
 *
 * @returns an answer for each request; of two for one name of a pool, that of the later.
 * @throws {CommandError} for flags that can't be used; the reason of the signal.
 */
export async function lookUpBases(
  requests: readonly BaseRequest[],
  access: LookupAccess,
  signal: AbortSignal,
): Promise<PoolLookups> {
  const latest = new Map(requests.map((request) => [JSON.stringify([request.pool, request.name]), request]));
  const answers = await Promise.all(
    [...latest.values()].map(async (request) => ({
      ...request,
      answer: await lookUp(request, access, signal),
    })),
  );
  const byPool = Map.groupBy(answers, ({ pool }) => pool);
  return new Map(
    [...byPool].map(([pool, own]) => [pool, new Map(own.map(({ name, answer }) => [name, answer]))]),
  );
}

async function lookUp(
  { pool, name, secret, rendered }: BaseRequest,
  access: LookupAccess,
  signal: AbortSignal,
): Promise<BaseLookup> {
  const registryOfPool = { pool, secrets: [secret], rendered };
  const answer = await askRegistry(registryOfPool, access, signal, (registry, bounded) =>
    resolve(registry, name, bounded),
  );
  return answer.kind === 'answer' ? answer.value : answer;
}

async function resolve(registry: RegistryClient, name: string, signal: AbortSignal): Promise<BaseLookup> {
  const reference = parseReference(name);
  const { bytes, digest } = await registry.getManifest(reference, signal);
  const parsed = parseManifest(bytes, name);
  if (parsed.kind === 'image') return { kind: 'found', digest, platforms: new Map() };
  const platforms = await imagesByArchitecture(registry, reference, parsed.index, signal);
  return { kind: 'found', digest, platforms };
}
