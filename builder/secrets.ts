import { ConfigMaps, Secrets } from '../api/kubernetes.ts';
import { REGISTRY_CAS_CONFIG_MAP } from '../api/names.ts';
import { registryOfKey } from '../api/registry-cas.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import { type AuthFile, parseAuthFile } from '../image/registry/credentials.ts';
import type { RegistryAccess } from '../image/registry/transport.ts';

/** A Secret that a MachineOSConfig names and that can't be used; the message never holds what stands in it. */
export class SecretError extends Error {
  override readonly name = 'SecretError';
}

export interface RegistryAccessOptions {
  readonly client: ApiClient;
  /** Where Secrets and the ConfigMap with registries' CAs are. */
  readonly namespace: string;
  /** Registries to speak plain HTTP to. */
  readonly plainHttp: ReadonlySet<string>;
}

/** Keys of the Secret types kubernetes.io/dockerconfigjson and kubernetes.io/dockercfg. */
const AUTH_KEYS = ['.dockerconfigjson', '.dockercfg'];

/**
 * Reads from the cluster how to reach registries, anew each time: a Secret or a CA that was mended counts at once.
 *
 * @param secrets names of Secrets with credentials; of two that are for the same registry the later counts.
 * @throws SecretError for one that is missing or holds no credentials; ApiError.
 */
export async function readRegistryAccess(
  options: RegistryAccessOptions,
  secrets: readonly (string | undefined)[],
  signal: AbortSignal,
): Promise<RegistryAccess> {
  const named = secrets.filter((name) => name !== undefined);
  const [authorities, ...files] = await Promise.all([
    readAuthorities(options, signal),
    ...named.map((name) => readCredentials(options, name, signal)),
  ]);
  return {
    plainHttp: options.plainHttp,
    auths: new Map(files.flatMap((file) => [...file])),
    caFor: (registry) => authorities.get(registry),
  };
}

async function readCredentials(
  { client, namespace }: RegistryAccessOptions,
  name: string,
  signal: AbortSignal,
): Promise<AuthFile> {
  const secret = await client.find(Secrets, name, { namespace, signal });
  if (secret === undefined) throw new SecretError(`Secret ${namespace}/${name}: not found`);
  const data = AUTH_KEYS.map((key) => secret.data?.[key]).find((value) => value !== undefined);
  if (data === undefined) {
    throw new SecretError(`Secret ${namespace}/${name}: has neither ${AUTH_KEYS.join(' nor ')}`);
  }
  try {
    return parseAuthFile(Buffer.from(data, 'base64').toString('utf8'));
  } catch (error) {
    const why = error instanceof Error ? error.message : 'can not be read';
    throw new SecretError(`Secret ${namespace}/${name}: ${why}`, { cause: error });
  }
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
