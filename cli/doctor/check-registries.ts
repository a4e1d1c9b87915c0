import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import { readRegistryAccess, SecretError } from '../../builder/registry-access.ts';
import { type ApiClient, ApiError } from '../../cluster/api-client.ts';
import { parseDigest } from '../../image/digest.ts';
import { parseReference, type Reference } from '../../image/reference.ts';
import { createRegistryClient, type RegistryClient } from '../../image/registry/registry-client.ts';
import type { ObservedCluster } from '../observe/observed-cluster.ts';
import { type Finding, findings } from './finding.ts';

/** ms; a registry that takes longer to answer is none. */
const DEADLINE_MS = 30_000;
/** An upload that is cancelled before its first byte: of what is never told. */
const NO_BLOB = { digest: parseDigest(`sha256:${'0'.repeat(64)}`), size: 1 };

/** Where a pool's images go and where its base image comes from, with the Secrets for both. */
interface PoolImages {
  readonly pool: string;
  readonly secrets: readonly (string | undefined)[];
  readonly push: string;
  readonly base: string | undefined;
}

/**
 * Tries, from this machine, what the builder would do with each pool's registry: read the base image, and begin an
 * upload, which is cancelled. Nothing is left there.
 *
 * @param baseImages base images that MachineConfigs name, by pool.
 */
export async function checkRegistries(
  client: ApiClient,
  namespace: string,
  seen: ObservedCluster,
  baseImages: ReadonlyMap<string, string>,
  signal: AbortSignal,
): Promise<Finding[]> {
  const { ok } = findings('registries');
  if (seen.machineOSConfigs.length === 0) return [ok('layering is off: no registry is needed')];
  const plainHttp = new Set(flagValues(seen.operator?.spec.template.spec.containers[0]?.args ?? []));
  const checks = seen.machineOSConfigs.map((config) =>
    checkPool(client, { namespace, plainHttp }, imagesOf(config, baseImages), signal),
  );
  return (await Promise.all(checks)).flat();
}

function imagesOf({ spec }: MachineOSConfig, baseImages: ReadonlyMap<string, string>): PoolImages {
  const pool = spec.machineConfigPool.name;
  return {
    pool,
    secrets: [spec.baseImagePullSecret?.name, spec.renderedImagePushSecret?.name],
    push: spec.renderedImagePushSpec,
    base: baseImages.get(pool) ?? spec.baseImage,
  };
}

async function checkPool(
  client: ApiClient,
  { namespace, plainHttp }: { readonly namespace: string; readonly plainHttp: ReadonlySet<string> },
  { pool, secrets, push, base }: PoolImages,
  signal: AbortSignal,
): Promise<Finding[]> {
  const { ok, warning, failure } = findings('registries');
  let registry: RegistryClient;
  try {
    registry = createRegistryClient(
      await readRegistryAccess({ client, namespace, plainHttp }, secrets, signal),
    );
  } catch (error) {
    if (error instanceof SecretError) {
      return [
        failure(
          `pool ${pool}: ${error.message}`,
          `kubectl -n ${namespace} create secret docker-registry, by that name`,
        ),
      ];
    }
    if (!(error instanceof ApiError) || error.status !== 403) throw error;
    return [
      warning(`pool ${pool}: its Secrets can't be read: ${error.message}`, 'ask somebody who may read them'),
    ];
  }
  const deadline = () => AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]);
  const attempt = async (what: string, mend: string, work: Promise<unknown>): Promise<Finding> => {
    try {
      await work;
      return ok(`pool ${pool}: ${what}`);
    } catch (error) {
      signal.throwIfAborted();
      const why = error instanceof Error ? error.message : String(error);
      return failure(`pool ${pool}: not possible from here: ${what}: ${why}`, mend);
    }
  };
  return Promise.all([
    base === undefined
      ? failure(
          `pool ${pool}: it has no base image`,
          'shale enable --base-image, or osImageURL in a MachineConfig',
        )
      : attempt(
          `read ${base}`,
          'correct the address or the pull secret',
          registry.getManifest(parseReference(base), deadline()),
        ),
    attempt(
      `push to ${push}`,
      'correct the address, or the push secret and its rights',
      beginUpload(registry, push, deadline()),
    ),
  ]);
}

/** A failure after the upload has begun makes the client cancel it. */
async function beginUpload(registry: RegistryClient, push: string, signal: AbortSignal): Promise<void> {
  const at: Reference = parseReference(push);
  const enough = new Error('an upload can be begun');
  // biome-ignore lint/correctness/useYield: it ends before the first byte.
  async function* nothing(): AsyncGenerator<Uint8Array> {
    throw enough;
  }
  await registry.putBlobStream(at, NO_BLOB, nothing(), signal).catch((error: unknown) => {
    if (error !== enough) throw error;
  });
}

/** Registries that the operator is told to speak plain HTTP to. */
function flagValues(args: readonly string[]): string[] {
  const at = args.indexOf('--insecure-registry');
  if (at === -1) return [];
  const rest = args.slice(at + 1);
  const end = rest.findIndex((word) => word.startsWith('--'));
  return end === -1 ? rest : rest.slice(0, end);
}
