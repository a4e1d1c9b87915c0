import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { encryptedKind, openEncryptedKey } from './encrypted-key.ts';

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
    throw new SigningKeyError(`${where}: is no public key in PEM`, { cause });
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
        ? `${where}: is encrypted, and ${password === undefined ? 'there is no password for it' : 'the password is not its password'}`
        : `${where}: is no private key in PEM; expected one made by openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256`,
    );
  }
}

function readCosignKey(pem: string, where: string, password: string | undefined): KeyObject {
  if (password === undefined) {
    throw new SigningKeyError(`${where}: is encrypted, and there is no password for it`);
  }
  const opened = openEncryptedKey(pem, password);
  if (!opened.ok) throw new SigningKeyError(`${where}: is encrypted, and ${opened.why}`);
  try {
    return createPrivateKey({ key: Buffer.from(opened.pkcs8), format: 'der', type: 'pkcs8' });
  } catch {
    throw new SigningKeyError(`${where}: what it holds under its password is no private key`);
  }
}

/** cosign and containers/image verify ECDSA over SHA-256; on P-256 alone that is what every version of both expects. */
function checkCurve(key: KeyObject, where: string): void {
  const curve = key.asymmetricKeyDetails?.namedCurve;
  if (key.asymmetricKeyType === 'ec' && curve === 'prime256v1') return;
  const found = curve ?? key.asymmetricKeyType ?? 'secret';
  throw new SigningKeyError(`${where}: is a key of kind ${found}; expected ECDSA on the curve P-256`);
}
