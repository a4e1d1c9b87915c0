import { generateKeyPairSync } from 'node:crypto';
import { Secrets } from '../api/kubernetes.ts';
import { labels, SIGNING_KEY_SECRET } from '../api/names.ts';
import { SigningKeySecret } from '../builder/secrets.ts';
import { type ApiClient, isAlreadyExists } from '../cluster/api-client.ts';
import { SigningKeyError } from '../image/signature/signing-key.ts';
import type { SigningKeyStore } from '../opt-in/signing/signing-steps.ts';

/**
 * The Secret with the key that signs images. The operator creates one of the cluster's own unless the admin names
 * another Secret or has created this one; it deletes only what it created.
 *
 * @param name of the Secret; one other than the default is the admin's.
 */
export function signingKeyStore(
  client: ApiClient,
  { namespace, name }: { readonly namespace: string; readonly name: string },
): SigningKeyStore {
  const secret = new SigningKeySecret({ client, namespace }, name);
  return {
    async read(signal) {
      try {
        const key = await secret.find(signal);
        if (key !== undefined) return { kind: 'usable', publicKey: key.publicKey };
        return name === SIGNING_KEY_SECRET
          ? { kind: 'missing' }
          : { kind: 'unusable', why: `Secret ${namespace}/${name}: not found` };
      } catch (error) {
        if (!(error instanceof SigningKeyError)) throw error;
        return { kind: 'unusable', why: error.message };
      }
    },
    async create(signal) {
      const object = {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name, labels: { [labels.madeBySwitch]: 'true' } },
        data: newKeyPair(),
      };
      await client.create(Secrets, object, { namespace, signal }).catch((error: unknown) => {
        if (!isAlreadyExists(error)) throw error;
      });
    },
    async remove(signal) {
      const present = await client.find(Secrets, name, { namespace, signal });
      if (present?.metadata.labels?.[labels.madeBySwitch] !== 'true') return;
      await client.delete(Secrets, name, { namespace, signal });
    },
  };
}

/**
 * @returns a Secret's data with the keys that `cosign generate-key-pair k8s://…` writes; the private key is not
 * encrypted.
 */
function newKeyPair(): Record<string, string> {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const encoded = (pem: string | Buffer) => Buffer.from(pem).toString('base64');
  return {
    'cosign.key': encoded(privateKey.export({ type: 'pkcs8', format: 'pem' })),
    'cosign.pub': encoded(publicKey.export({ type: 'spki', format: 'pem' })),
  };
}
