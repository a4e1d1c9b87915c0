import { type Secret, Secrets } from '../../api/kubernetes.ts';
import { type RegistryAccessOptions, SecretError } from '../secrets.ts';
import type { BuildSecret } from './build-context.ts';

/**
 * Reads the Secrets that commands may use, each key as one: `<Secret>/<key>`.
 *
 * @throws SecretError for one that is missing or empty; ApiError.
 */
export async function readBuildSecrets(
  { client, namespace }: Pick<RegistryAccessOptions, 'client' | 'namespace'>,
  names: readonly string[],
  signal: AbortSignal,
): Promise<readonly BuildSecret[]> {
  const read = names.map(async (name) => {
    const secret = await client.find(Secrets, name, { namespace, signal });
    if (secret === undefined) throw new SecretError(`Secret ${namespace}/${name}: not found`);
    const values = secretValues(secret);
    if (values.length === 0) throw new SecretError(`Secret ${namespace}/${name}: has no data`);
    return values;
  });
  return (await Promise.all(read)).flat();
}

/** @returns each key of a Secret as one secret, in order of the keys. */
export function secretValues({ metadata, data = {} }: Secret): readonly BuildSecret[] {
  return Object.entries(data)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => ({ id: `${metadata.name}/${key}`, value: Buffer.from(value, 'base64') }));
}
