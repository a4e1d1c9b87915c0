import { errorMessage } from '../api/error-message.ts';
import { ConfigMaps, Secrets } from '../api/kubernetes.ts';
import { labels, REGISTRY_CAS_CONFIG_MAP } from '../api/names.ts';
import { registryOfKey } from '../api/node-certificates.ts';
import type { KubernetesObject } from '../api/object.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import type { RegistryAccess } from '../image/registry/connection.ts';
import { type AuthFile, parseAuthFile, type UnreadableCredentials } from '../image/registry/credentials.ts';

/** A Secret that a MachineOSConfig names and that can't be used. The message contains nothing of its data. */
export class SecretError extends Error {
  override readonly name = 'SecretError';
}

export interface RegistryAccessOptions {
  readonly client: ApiClient;
  /** The namespace of Secrets and of the ConfigMap with the registries' CAs. */
  readonly namespace: string;
  /** Registries reached over plain HTTP. */
  readonly plainHttp: ReadonlySet<string>;
}

/** Secrets with credentials, and for whose images they are named. */
export interface NamedSecrets {
  /** Absent where they are not yet named for one. */
  readonly pool?: string | undefined;
  /** Of two for the same registry the later wins. */
  readonly names: readonly (string | undefined)[];
}

/**
 * A Secret with the label `shale.dev/pool` is for the builds of that pool alone, no matter who names it. Who may name a
 * Secret is decided by the API server (manifests/base/secrets-admission.yaml), by the rights of who writes; a tool that
 * writes for several teams has the rights of all of them.
 *
 * @returns why builds of the pool may not use the Secret; undefined if they may.
 */
export function otherPoolRefusal(
  { metadata }: Pick<KubernetesObject, 'metadata'>,
  pool: string,
): string | undefined {
  const owner = metadata.labels?.[labels.pool];
  return owner === undefined || owner === pool
    ? undefined
    : `its label ${labels.pool} says that only pool ${owner} may use it, and MachineOSConfig ${pool} names it`;
}

/** Keys of the Secret types kubernetes.io/dockerconfigjson and kubernetes.io/dockercfg. */
const AUTH_KEYS = ['.dockerconfigjson', '.dockercfg'];

/**
 * Reads from the cluster how to reach registries; each time, so that a Secret or a CA that was fixed is used at once.
 *
 * @throws SecretError if one is missing, is another pool's, or has no credentials; ApiError.
 */
export async function readRegistryAccess(
  options: RegistryAccessOptions,
  { pool, names }: NamedSecrets,
  signal: AbortSignal,
): Promise<RegistryAccess> {
  const named = names.filter((name) => name !== undefined);
  const [authorities, ...files] = await Promise.all([
    readAuthorities(options, signal),
    ...named.map((name) => readCredentials(options, { name, pool }, signal)),
  ]);
  return {
    plainHttp: options.plainHttp,
    auths: new Map(files.flatMap((file) => [...file])),
    caFor: (registry) => authorities.get(registry),
  };
}

async function readCredentials(
  { client, namespace }: RegistryAccessOptions,
  { name, pool }: { readonly name: string; readonly pool: string | undefined },
  signal: AbortSignal,
): Promise<AuthFile> {
  const secret = await client.find(Secrets, name, { namespace, signal });
  if (secret === undefined) throw new SecretError(`Secret ${namespace}/${name}: not found`);
  const why = pool === undefined ? undefined : otherPoolRefusal(secret, pool);
  if (why !== undefined) throw new SecretError(`Secret ${namespace}/${name}: ${why}`);
  const data = AUTH_KEYS.map((key) => secret.data?.[key]).find((value) => value !== undefined);
  if (data === undefined) {
    throw new SecretError(`Secret ${namespace}/${name}: has neither ${AUTH_KEYS.join(' nor ')}`);
  }
  try {
    const read = parseAuthFile(Buffer.from(data, 'base64').toString('utf8'));
    return new Map([...read].map(([place, entry]) => [place, ofSecret(entry, `${namespace}/${name}`)]));
  } catch (error) {
    throw new SecretError(`Secret ${namespace}/${name}: ${errorMessage(error)}`, { cause: error });
  }
}

function ofSecret<T extends object>(entry: T | UnreadableCredentials, secret: string) {
  return 'unreadable' in entry ? { unreadable: `Secret ${secret}: ${entry.unreadable}` } : entry;
}

async function readAuthorities(
  { client, namespace }: RegistryAccessOptions,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const configMap = await client.find(ConfigMaps, REGISTRY_CAS_CONFIG_MAP, { namespace, signal });
  return new Map(
    Object.entries(configMap?.data ?? {}).flatMap(([key, pem]) => {
      const registry = registryOfKey(key);
      return registry === undefined ? [] : [[registry, pem] as const];
    }),
  );
}
