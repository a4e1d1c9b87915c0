import { Deployments } from '../../api/kubernetes.ts';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import { OPERATOR_DEPLOYMENT } from '../../api/names.ts';
import { isByDigest } from '../../api/references.ts';
import { requestedBase } from '../../builder/decide.ts';
import { readRegistryAccess } from '../../builder/secrets.ts';
import { renderedRegistries } from '../../builder/steps/make-image.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { imageFor, parseManifest } from '../../image/manifest.ts';
import { parseReference } from '../../image/reference.ts';
import type { RegistryAccess } from '../../image/registry/connection.ts';
import type { BaseLookup, PoolLookups } from '../change/base-lookup.ts';
import { type OfflineCluster, renderOffline } from '../change/offline-cluster.ts';
import { unlessForbidden } from '../command-line/cluster-access.ts';
import { CommandError } from '../command-line/exit-codes.ts';
import { type RegistryFlags, registryClient } from '../command-line/registry-flags.ts';
import { flagValues } from '../doctor/operator-flags.ts';

/** ms; a plan that waits for longer is of less use than one that counts a reboot. */
const DEADLINE_MS = 10_000;

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

/** How registries are reached. */
export interface LookupAccess {
  /** Credentials from a file replace the Secrets. */
  readonly flags: RegistryFlags;
  /** The cluster with the Secrets and CAs; absent without one. */
  readonly cluster?: { readonly client: ApiClient; readonly namespace: string };
}

/** @returns the base images that the pools request before a change and after it; those by digest need no look-up. */
export function baseRequests(before: OfflineCluster, after: OfflineCluster): readonly BaseRequest[] {
  return [before, after].flatMap((cluster) =>
    cluster.machineOSConfigs.flatMap((config) => baseRequest(cluster, config)),
  );
}

function baseRequest(cluster: OfflineCluster, config: MachineOSConfig): readonly BaseRequest[] {
  const { machineConfigPool, baseImagePullSecret } = config.spec;
  const pool = cluster.pools.find(({ metadata }) => metadata.name === machineConfigPool.name);
  const rendering = pool && renderOffline(cluster, pool);
  if (rendering?.ok !== true) return [];
  const { rendered } = rendering;
  const name = requestedBase(config, rendered);
  if (name === undefined || isByDigest(name)) return [];
  return [{ pool: machineConfigPool.name, name, secret: baseImagePullSecret?.name, rendered }];
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

async function lookUp(request: BaseRequest, access: LookupAccess, signal: AbortSignal): Promise<BaseLookup> {
  const late = AbortSignal.timeout(DEADLINE_MS);
  const bounded = AbortSignal.any([signal, late]);
  try {
    return await ask(request, access, bounded);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof CommandError) throw error;
    if (late.aborted) return { kind: 'unknown', why: `no answer within ${DEADLINE_MS / 1000} s` };
    return { kind: 'unknown', why: error instanceof Error ? error.message : String(error) };
  }
}

async function ask(
  { name, secret, rendered }: BaseRequest,
  { flags, cluster }: LookupAccess,
  signal: AbortSignal,
): Promise<BaseLookup> {
  const secrets = flags.authfile === undefined ? [secret] : [];
  const known = cluster && (await accessOf(cluster, secrets, signal));
  const registry = await registryClient(flags, undefined, known, renderedRegistries(rendered));
  const { bytes, digest } = await registry.getManifest(parseReference(name), signal);
  const parsed = parseManifest(bytes, name);
  if (parsed.kind === 'image') return { kind: 'found', digest, platforms: new Map() };
  const architectures = parsed.index.manifests.flatMap(({ platform }) => platform?.architecture ?? []);
  const images = [...new Set(architectures)].map(
    (architecture) => [architecture, imageFor(parsed.index, architecture)?.digest] as const,
  );
  const platforms = images.flatMap(([architecture, image]) =>
    image === undefined ? [] : [[architecture, image] as const],
  );
  return { kind: 'found', digest, platforms: new Map(platforms) };
}

/** As the builder of the cluster has it. @throws SecretError; ApiError. */
async function accessOf(
  cluster: NonNullable<LookupAccess['cluster']>,
  secrets: readonly (string | undefined)[],
  signal: AbortSignal,
): Promise<RegistryAccess> {
  const { client, namespace } = cluster;
  const operator = await unlessForbidden(
    client.find(Deployments, OPERATOR_DEPLOYMENT, { namespace, signal }),
  );
  const plainHttp = new Set(flagValues(operator, '--insecure-registry'));
  return readRegistryAccess({ client, namespace, plainHttp }, secrets, signal);
}
