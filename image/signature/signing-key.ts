import { createPrivateKey, createPublicKey, type KeyObject, scryptSync, sign, verify } from 'node:crypto';
import { xsalsa20poly1305 } from '@noble/ciphers/salsa.js';
import { z } from 'zod';

/** A private key that images are signed with. It has no text form: it can't be logged by mistake. */
export interface SigningKey {
  /** SubjectPublicKeyInfo in PEM: what a policy.json's `keyPath` and `cosign verify --key` take. */
  readonly publicKey: string;
  /** @returns the signature of bytes: ECDSA over SHA-256, DER. */
  sign(bytes: Uint8Array): Uint8Array;
}

/** A key that can't be used; the message never holds what stands in it. */
export class SigningKeyError extends Error {
  override readonly name = 'SigningKeyError';
}

/**
 * Reads a private key: ECDSA on P-256 in PEM, PKCS#8 or SEC 1, or as cosign encrypts it.
 *
 * @param pem its text.
 * @param where it comes from, for the message of an error.
 * @param password of a key that is encrypted.
 * @throws SigningKeyError that says what is wrong and what would be right.
 */
export function parseSigningKey(pem: string, where: string, password?: string): SigningKey {
  const key = readPrivateKey(pem, where, password);
  checkCurve(key, where);
  return {
    publicKey: String(createPublicKey(key).export({ type: 'spki', format: 'pem' })),
    sign: (bytes) => sign('sha256', bytes, key),
  };
}

/**
 * Reads a public key: ECDSA on P-256 in PEM.
 *
 * @throws SigningKeyError
 */
export function parsePublicKey(pem: string, where: string): KeyObject {
  try {
    const key = createPublicKey(pem);
    checkCurve(key, where);
    return key;
  } catch (cause) {
    if (cause instanceof SigningKeyError) throw cause;
    throw new SigningKeyError(`${where}: is not a public key in PEM`, { cause });
  }
}

/** @returns whether a key made the signature of these bytes. */
export function isSignedBy(key: KeyObject, bytes: Uint8Array, signature: Uint8Array): boolean {
  return verify('sha256', bytes, key, signature);
}

function readPrivateKey(pem: string, where: string, password: string | undefined): KeyObject {
  if (encryptedKind(pem) !== undefined) return readCosignKey(pem, where, password);
  try {
    return createPrivateKey({ key: pem, ...(password === undefined ? {} : { passphrase: password }) });
  } catch {
    // Its cause may quote the key.
    const encrypted = pem.includes('-----BEGIN ENCRYPTED PRIVATE KEY-----');
    throw new SigningKeyError(
      encrypted
        ? `${where}: is encrypted, and ${password === undefined ? 'no password is given' : 'the password is wrong'}`
        : `${where}: is not a private key in PEM; expected one created by openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256`,
    );
  }
}

function readCosignKey(pem: string, where: string, password: string | undefined): KeyObject {
  if (password === undefined) {
    throw new SigningKeyError(`${where}: is encrypted, and no password is given`);
  }
  const opened = openEncryptedKey(pem, password);
  if (!opened.ok) throw new SigningKeyError(`${where}: is encrypted, and ${opened.why}`);
  try {
    return createPrivateKey({ key: Buffer.from(opened.pkcs8), format: 'der', type: 'pkcs8' });
  } catch {
    throw new SigningKeyError(`${where}: its decrypted content is not a private key`);
  }
}

/** cosign and containers/image verify ECDSA over SHA-256; on P-256 alone that is what every version of both expects. */
function checkCurve(key: KeyObject, where: string): void {
  const curve = key.asymmetricKeyDetails?.namedCurve;
  if (key.asymmetricKeyType === 'ec' && curve === 'prime256v1') return;
  const type = curve ?? key.asymmetricKeyType ?? 'secret';
  throw new SigningKeyError(`${where}: is a key of type ${type}; expected ECDSA on the curve P-256`);
}

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
type Opened =
  | { readonly ok: true; readonly pkcs8: Uint8Array }
  | { readonly ok: false; readonly why: string };

/** @returns the key's kind when it is encrypted the way cosign does it; undefined for any other text. */
function encryptedKind(pem: string): string | undefined {
  return PEM.exec(pem)?.[1];
}

/**
 * Opens a key that cosign, skopeo or podman made.
 *
 * @param pem of which encryptedKind is known.
 * @param password takes a tenth of a second and tens of megabytes to try.
 */
function openEncryptedKey(pem: string, password: string): Opened {
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
    return { ok: false, why: 'the password is wrong' };
  }
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch {
    return undefined;
  }
}
