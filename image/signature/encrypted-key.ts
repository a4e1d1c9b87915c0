import { scryptSync } from 'node:crypto';
import { xsalsa20poly1305 } from '@noble/ciphers/salsa.js';
import { z } from 'zod';

/** As cosign and skopeo write a private key: JSON in PEM, the key under scrypt and NaCl's secretbox. */
const PEM = /-----BEGIN (ENCRYPTED (?:SIGSTORE|COSIGN) PRIVATE KEY)-----([\sA-Za-z0-9+/=]*)-----END \1-----/;
/** scrypt asks for 128·N·r bytes; today's tools take 64 MiB. More than this is no key, or an attack. */
const MAX_SCRYPT_BYTES = 256 * 1024 * 1024;

const base64 = z.base64().transform((text) => Buffer.from(text, 'base64'));
const Sealed = z.object({
  kdf: z.object({
    name: z.literal('scrypt'),
    params: z
      .object({ N: z.int().min(2), r: z.int().min(1).max(64), p: z.int().min(1).max(16) })
      .refine(({ N, r }) => 128 * N * r <= MAX_SCRYPT_BYTES, 'asks for more memory than a key needs'),
    salt: base64,
  }),
  cipher: z.object({
    name: z.literal('nacl/secretbox'),
    nonce: base64.refine((nonce) => nonce.length === 24, 'is not 24 bytes long'),
  }),
  ciphertext: base64,
});

/** Why a key could not be opened; never a word of what stands in it. */
export type Opened =
  | { readonly ok: true; readonly pkcs8: Uint8Array }
  | { readonly ok: false; readonly why: string };

/** @returns the key's kind when it is encrypted the way cosign does it; undefined for any other text. */
export function encryptedKind(pem: string): string | undefined {
  return PEM.exec(pem)?.[1];
}

/**
 * Opens a key that cosign, skopeo or podman made.
 *
 * @param pem of which encryptedKind is known.
 * @param password takes a tenth of a second and tens of megabytes to try.
 */
export function openEncryptedKey(pem: string, password: string): Opened {
  const sealed = Sealed.safeParse(parseJson(Buffer.from(PEM.exec(pem)?.[2] ?? '', 'base64')));
  if (!sealed.success) {
    const [issue] = sealed.error.issues;
    return { ok: false, why: `${issue?.path.join('.') || 'its text'} is not as cosign writes it` };
  }
  const { kdf, cipher, ciphertext } = sealed.data;
  const { N, r, p } = kdf.params;
  try {
    const key = scryptSync(password, kdf.salt, 32, { N, r, p, maxmem: 2 * MAX_SCRYPT_BYTES });
    return { ok: true, pkcs8: xsalsa20poly1305(key, cipher.nonce).decrypt(ciphertext) };
  } catch {
    return { ok: false, why: 'the password is not its password' };
  }
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch {
    return undefined;
  }
}
