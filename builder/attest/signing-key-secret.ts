import { Secrets } from '../../api/kubernetes.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { parseSigningKey, type SigningKey, SigningKeyError } from '../../image/signature/signing-key.ts';

/** The key of the Secret's data: the one that cosign's own Secrets have. */
export const SIGNING_KEY_DATA = 'cosign.key';

/**
 * Reads the key that images are signed with, anew each time: one that was exchanged counts at once.
 *
 * @param name of the Secret.
 * @throws SigningKeyError for a Secret that is missing or holds no usable key, without a word of what stands in it; ApiError.
 */
export async function readSigningKey(
  { client, namespace }: { readonly client: ApiClient; readonly namespace: string },
  name: string,
  signal: AbortSignal,
): Promise<SigningKey> {
  const where = `Secret ${namespace}/${name}`;
  const secret = await client.find(Secrets, name, { namespace, signal });
  if (secret === undefined) throw new SigningKeyError(`${where}: not found`);
  const data = secret.data?.[SIGNING_KEY_DATA];
  if (data === undefined) throw new SigningKeyError(`${where}: has no ${SIGNING_KEY_DATA}`);
  return parseSigningKey(Buffer.from(data, 'base64').toString('utf8'), `${where}, ${SIGNING_KEY_DATA}`);
}
