import { createHash } from 'node:crypto';
import { dataDigest } from './node-certificates.ts';
import type { Digest } from './references.ts';

/** The key of the Secret's data, as in the Secrets that cosign creates. */
export const SIGNING_KEY = 'cosign.key';

/** In place of a version of the keys: the admin switched signing off (`signing: disabled` in the layering switch). */
export const SIGNING_DISABLED = 'Disabled';

/**
 * The name of a set of public keys in the spec of a MachineConfigNode. The daemon computes it again from the ConfigMap
 * that it reads, so that it uses only keys that the operator named.
 *
 * @param data of ConfigMap `image-signing-keys`: a public key in PEM for each name. The operator writes no keys only if
 *   signing is disabled.
 * @returns the same digest for the same data, in whatever order the keys come; `Disabled` for none.
 */
export function signingKeysVersion(data: Readonly<Record<string, string>>): Digest | typeof SIGNING_DISABLED {
  return Object.keys(data).length === 0 ? SIGNING_DISABLED : dataDigest(data);
}

/**
 * The name of one key in the ConfigMap.
 *
 * @param pem the public key (SubjectPublicKeyInfo).
 * @returns the start of its SHA-256: the same key always has the same name.
 */
export function signingKeyName(pem: string): string {
  return `${createHash('sha256').update(pem.trim()).digest('hex').slice(0, 16)}.pub`;
}

/**
 * Whether nodes accept what a key signs.
 *
 * @param data of ConfigMap `image-signing-keys`; undefined while it doesn't exist.
 * @param key its name in the ConfigMap. An entry counts only under the name of its own key: the operator removes
 *   others.
 */
export function isKeyPublished(data: Readonly<Record<string, string>> | undefined, key: string): boolean {
  const pem = data?.[key];
  return pem !== undefined && signingKeyName(pem) === key;
}
