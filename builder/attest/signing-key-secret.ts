import { Secrets } from '../../api/kubernetes.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { parseSigningKey, type SigningKey, SigningKeyError } from '../../image/signature/signing-key.ts';

/** The keys of the Secret's data: those that cosign's own Secrets have. */
const KEY = 'cosign.key';
const PASSWORD = 'cosign.password';

/**
 * A reader of the key that images are signed with: the Secret is read anew each time, so that one that was exchanged counts
 * at once; a key that is the same is not opened again, which an encrypted one makes dear on purpose.
 *
 * @param secretName `cosign.key` is the key, `cosign.password` its password where it is encrypted.
 * @returns a function that throws SigningKeyError for a Secret that is missing or holds no usable key, without a word of
 *   what stands in it; ApiError.
 */
export function signingKeyReader(
  { client, namespace }: { readonly client: ApiClient; readonly namespace: string },
  secretName: string,
): (signal: AbortSignal) => Promise<SigningKey> {
  const where = `Secret ${namespace}/${secretName}`;
  let last:
    | { readonly pem: string; readonly password: string | undefined; readonly key: SigningKey }
    | undefined;
  return async (signal) => {
    const secret = await client.find(Secrets, secretName, { namespace, signal });
    if (secret === undefined) throw new SigningKeyError(`${where}: not found`);
    const text = (name: string) => {
      const data = secret.data?.[name];
      return data === undefined ? undefined : Buffer.from(data, 'base64').toString('utf8');
    };
    const [pem, password] = [text(KEY), text(PASSWORD)];
    if (pem === undefined) throw new SigningKeyError(`${where}: has no ${KEY}`);
    if (last?.pem !== pem || last.password !== password) {
      last = { pem, password, key: parseSigningKey(pem, `${where}, ${KEY}`, password) };
    }
    return last.key;
  };
}
