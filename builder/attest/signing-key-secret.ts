import { Secrets } from '../../api/kubernetes.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { parseSigningKey, type SigningKey, SigningKeyError } from '../../image/signature/signing-key.ts';

/** The keys of the Secret's data: those that cosign's own Secrets have. */
const KEY = 'cosign.key';
const PASSWORD = 'cosign.password';

/**
 * Reads the key that images are signed with, anew each time: one that was exchanged counts at once.
 *
 * @param secretName of the Secret: `cosign.key` is the key, `cosign.password` its password where it is encrypted.
 * @throws SigningKeyError for a Secret that is missing or holds no usable key, without a word of what stands in it; ApiError.
 */
export async function readSigningKey(
  { client, namespace }: { readonly client: ApiClient; readonly namespace: string },
  secretName: string,
  signal: AbortSignal,
): Promise<SigningKey> {
  const where = `Secret ${namespace}/${secretName}`;
  const secret = await client.find(Secrets, secretName, { namespace, signal });
  if (secret === undefined) throw new SigningKeyError(`${where}: not found`);
  const text = (name: string) => {
    const data = secret.data?.[name];
    return data === undefined ? undefined : Buffer.from(data, 'base64').toString('utf8');
  };
  const pem = text(KEY);
  if (pem === undefined) throw new SigningKeyError(`${where}: has no ${KEY}`);
  return parseSigningKey(pem, `${where}, ${KEY}`, text(PASSWORD));
}
