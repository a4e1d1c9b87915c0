import { errorMessage } from '../../api/error-message.ts';
import { parseDigest } from '../../api/references.ts';
import { readRegistryAccess, SecretError } from '../../builder/secrets.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { ApiError } from '../../cluster/api-client.ts';
import { parseReference, type Reference } from '../../image/reference.ts';
import type { RegistryAccess } from '../../image/registry/connection.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import { RegistryError } from '../../image/registry/registry-error.ts';
import { type RegistryFlags, registryClient } from '../command-line/registry-flags.ts';
import { type Finding, findings, found } from './finding.ts';
import type { RegistryTarget } from './registry-targets.ts';

/** ms; a registry that takes longer to respond counts as unavailable. */
const DEADLINE_MS = 30_000;
/** A blob for an upload that is cancelled before its first byte. */
const NO_BLOB = { digest: parseDigest(`sha256:${'0'.repeat(64)}`), size: 1 };

/** Where registries are tested from, and with which access. */
export interface RegistryTrial {
  readonly client: ApiClient;
  /** Where Secrets and CAs are. */
  readonly namespace: string;
  /** In addition to the settings of the cluster; credentials from a file replace the Secrets. */
  readonly flags: RegistryFlags;
  /** For the report, such as `this machine`. */
  readonly from: string;
  readonly signal: AbortSignal;
}

/**
 * Tests what Shale does with each pool's registry: it reads an image, and starts an upload, which is cancelled. Nothing
 * is left in the registry.
 *
 * @throws CommandError for flags that can't be used; ApiError.
 */
export async function tryRegistries(
  targets: readonly RegistryTarget[],
  trial: RegistryTrial,
): Promise<Finding[]> {
  return (await Promise.all(targets.map((target) => tryPool(target, trial)))).flat();
}

async function tryPool(target: RegistryTarget, trial: RegistryTrial): Promise<Finding[]> {
  const { pool, pull, push, mayBeMissing = false } = target;
  const { namespace, from, signal } = trial;
  const { ok, warning, failure } = findings(`registries, from ${from}`);
  let registry: RegistryClient;
  try {
    registry = await openRegistry(target, trial);
  } catch (error) {
    if (error instanceof SecretError) {
      return [
        failure(
          `pool ${pool}: ${error.message}`,
          `create it: kubectl -n ${namespace} create secret docker-registry`,
        ),
      ];
    }
    if (!(error instanceof ApiError) || error.status !== 403) throw error;
    return [
      warning(
        `pool ${pool}: its Secrets can't be read: ${error.message}`,
        'ask an administrator who is allowed to read them, or pass credentials with --authfile',
      ),
    ];
  }
  const attempt = async (what: string, fix: string, work: Promise<unknown>): Promise<Finding> => {
    try {
      await work;
      return ok(`pool ${pool}: can ${what}`);
    } catch (error) {
      signal.throwIfAborted();
      const why = errorMessage(error);
      return failure(`pool ${pool}: can't ${what} from ${from}: ${why}`, fix);
    }
  };
  const deadline = () => AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]);
  const read = async (image: string) => registry.getManifest(parseReference(image), deadline());
  const tried = await Promise.all([
    pull !== undefined &&
      (mayBeMissing
        ? attempt(`reach ${pull}`, FIX, unlessMissing(read(pull)))
        : attempt(`read ${pull}`, FIX, read(pull))),
    push !== undefined &&
      attempt(
        `push to ${push}`,
        `${FIX}; the account needs permission to push`,
        beginUpload(registry, push, deadline()),
      ),
  ]);
  return found(...tried);
}

const FIX =
  'correct the address, the Secret with the credentials, the CA (ConfigMap registry-cas), or the network path to the registry';

/** @throws SecretError, ApiError, CommandError */
export async function openRegistry(target: RegistryTarget, trial: RegistryTrial): Promise<RegistryClient> {
  return registryClient(trial.flags, undefined, await accessOf(target, trial));
}

/** Doesn't read the Secrets when a file has the credentials: the user may not be allowed to read them. */
function accessOf(
  { pool, secrets }: RegistryTarget,
  { client, namespace, flags, signal }: RegistryTrial,
): Promise<RegistryAccess> {
  const names = flags.authfile === undefined ? secrets : [];
  return readRegistryAccess({ client, namespace, plainHttp: new Set() }, { pool, names }, signal);
}

/** A 404 proves that access was granted. */
function unlessMissing(read: Promise<unknown>): Promise<unknown> {
  return read.catch((error: unknown) => {
    if (!(error instanceof RegistryError && error.status === 404)) throw error;
  });
}

/** A failure after the upload has started makes the client cancel it. */
async function beginUpload(registry: RegistryClient, push: string, signal: AbortSignal): Promise<void> {
  const at: Reference = parseReference(push);
  const enough = new Error('an upload can be started');
  // biome-ignore lint/correctness/useYield: it ends before the first byte.
  async function* nothing(): AsyncGenerator<Uint8Array> {
    throw enough;
  }
  await registry.putBlobStream(at, NO_BLOB, nothing(), signal).catch((error: unknown) => {
    if (error !== enough) throw error;
  });
}
