import { errorMessage } from '../../api/error-message.ts';
import { Deployments } from '../../api/kubernetes.ts';
import type { MachineConfig } from '../../api/machine-config.ts';
import { OPERATOR_DEPLOYMENT } from '../../api/names.ts';
import { renderedRegistries } from '../../builder/rendered-registries.ts';
import { type NamedSecrets, readRegistryAccess } from '../../builder/secrets.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import type { RegistryAccess } from '../../image/registry/connection.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import type { RegistryAnswer } from '../../predict/image/base-lookup.ts';
import { unlessForbidden } from '../command-line/cluster-access.ts';
import { CommandError } from '../command-line/exit-codes.ts';
import { type RegistryFlags, registryClient } from '../command-line/registry-flags.ts';
import { flagValues } from '../doctor/operator-flags.ts';

/** ms; a plan that waits for longer is of less use than one that counts a reboot. */
const DEADLINE_MS = 10_000;

/** How registries are reached. */
export interface LookupAccess {
  /** Credentials from a file replace the Secrets. */
  readonly flags: RegistryFlags;
  /** The cluster with the Secrets and CAs; absent without one. */
  readonly cluster?: { readonly client: ApiClient; readonly namespace: string } | undefined;
}

/** What a pool's images are read with. */
export interface PoolRegistry {
  readonly pool: string;
  /** The Secrets with the credentials, in Shale's namespace. */
  readonly secrets: readonly (string | undefined)[];
  /** The pool's rendered config, which has the mirrors. */
  readonly rendered: MachineConfig;
}

/**
 * Asks a registry as the builder asks it for a pool.
 *
 * @param deadlineMs of the answer; default: what one request takes at most.
 * @throws {CommandError} for flags that can't be used; the reason of the signal.
 */
export async function askRegistry<T>(
  { pool, secrets, rendered }: PoolRegistry,
  { flags, cluster }: LookupAccess,
  signal: AbortSignal,
  question: (registry: RegistryClient, signal: AbortSignal) => Promise<T>,
  deadlineMs = DEADLINE_MS,
): Promise<RegistryAnswer<T>> {
  const late = AbortSignal.timeout(deadlineMs);
  const bounded = AbortSignal.any([signal, late]);
  try {
    const named = flags.authfile === undefined ? secrets : [];
    const known = cluster && (await accessOf(cluster, { pool, names: named }, bounded));
    const registry = await registryClient(flags, undefined, known, renderedRegistries(rendered));
    return { kind: 'answer', value: await question(registry, bounded) };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof CommandError) throw error;
    if (late.aborted) return { kind: 'unknown', why: `no answer within ${deadlineMs / 1000} s` };
    return { kind: 'unknown', why: errorMessage(error) };
  }
}

/** As the builder of the cluster has it. @throws SecretError; ApiError. */
async function accessOf(
  cluster: NonNullable<LookupAccess['cluster']>,
  secrets: NamedSecrets,
  signal: AbortSignal,
): Promise<RegistryAccess> {
  const { client, namespace } = cluster;
  const operator = await unlessForbidden(
    client.find(Deployments, OPERATOR_DEPLOYMENT, { namespace, signal }),
  );
  const plainHttp = new Set(flagValues(operator, '--insecure-registry'));
  return readRegistryAccess({ client, namespace, plainHttp }, secrets, signal);
}
