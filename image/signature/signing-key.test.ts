import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { isSignedBy, parsePublicKey, parseSigningKey, SigningKeyError } from './signing-key.ts';

const bytes = Buffer.from('payload');
const ecKey = (namedCurve = 'P-256') => generateKeyPairSync('ec', { namedCurve }).privateKey;

const fixture = (name: string) => readFileSync(path.join(import.meta.dirname, 'fixtures', name), 'utf8');
const skopeoKey = fixture('skopeo.private');

test.each(['pkcs8', 'sec1'] as const)('a key in %s signs what its public key verifies', (type) => {
  const key = parseSigningKey(String(ecKey().export({ type, format: 'pem' })), 'key');
  const publicKey = parsePublicKey(key.publicKey, 'public key');
  expect(isSignedBy(publicKey, bytes, key.sign(bytes))).toBe(true);
  expect(isSignedBy(publicKey, Buffer.from('another'), key.sign(bytes))).toBe(false);
  expect(isSignedBy(publicKey, bytes, Buffer.from('no signature'))).toBe(false);
});

test.each<[string, string, RegExp]>([
  ['nothing', '', /is not a private key in PEM/],
  ['an encrypted key without its password', encrypted(), /is encrypted, and no password is given/],
  ['another curve', pem(ecKey('P-384')), /of type secp384r1; expected ECDSA on the curve P-256/],
  ['another algorithm', pem(generateKeyPairSync('ed25519').privateKey), /of type ed25519/],
  ["cosign's own encryption without its password", skopeoKey, /is encrypted, and no password is given/],
])('%s is refused, and the message says where and never what', (_name, text, why) => {
  const parse = () => parseSigningKey(text, 'Secret shale-system/signing');
  expect(parse).toThrow(SigningKeyError);
  expect(parse).toThrow(/^Secret shale-system\/signing: /);
  expect(parse).toThrow(why);
  const secret = text.split('\n')[1] ?? '';
  expect(caught(parse)).not.toContain(secret === '' ? '\0' : secret);
});

test('an encrypted key signs with its password, and is refused with another', () => {
  const key = parseSigningKey(encrypted(), 'key', 'secret');
  expect(isSignedBy(parsePublicKey(key.publicKey, 'public key'), bytes, key.sign(bytes))).toBe(true);
  expect(() => parseSigningKey(encrypted(), 'key', 'guess')).toThrow(
    'key: is encrypted, and the password is wrong',
  );
});

test('a key that skopeo made and encrypted signs what its public key verifies', () => {
  const key = parseSigningKey(skopeoKey, 'key', 'correct horse');
  expect(key.publicKey).toBe(fixture('skopeo.pub'));
  const publicKey = parsePublicKey(fixture('skopeo.pub'), 'skopeo.pub');
  expect(isSignedBy(publicKey, bytes, key.sign(bytes))).toBe(true);
  expect(() => parseSigningKey(skopeoKey, 'key', 'wrong horse')).toThrow(
    'key: is encrypted, and the password is wrong',
  );
});

const sealed = JSON.parse(
  Buffer.from(skopeoKey.split('\n').slice(1, -2).join(''), 'base64').toString(),
) as Record<string, Record<string, unknown>>;

test.each<[string, unknown, string]>([
  ['no JSON', undefined, 'its text is not as cosign writes it'],
  ['another way to derive keys', { ...sealed, kdf: { ...sealed['kdf'], name: 'pbkdf2' } }, 'kdf.name'],
  [
    'a derivation that would fill the memory',
    { ...sealed, kdf: { ...sealed['kdf'], params: { N: 2 ** 24, r: 8, p: 1 } } },
    'kdf.params',
  ],
  ['a short nonce', { ...sealed, cipher: { ...sealed['cipher'], nonce: 'AAAA' } }, 'cipher.nonce'],
])('an encrypted key with %s is refused', (_name, content, why) => {
  const text = Buffer.from(JSON.stringify(content) ?? '').toString('base64');
  const pem = `-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\n${text}\n-----END ENCRYPTED SIGSTORE PRIVATE KEY-----\n`;
  expect(() => parseSigningKey(pem, 'key', 'correct horse')).toThrow(`key: is encrypted, and ${why}`);
});

test('a public key of another kind is refused', () => {
  const other = generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' });
  expect(() => parsePublicKey(String(other), 'key.pub')).toThrow(/key\.pub: is a key of type ed25519/);
  expect(() => parsePublicKey('garbage', 'key.pub')).toThrow(/key\.pub: is not a public key in PEM/);
});

function pem(key: ReturnType<typeof ecKey>): string {
  return String(key.export({ type: 'pkcs8', format: 'pem' }));
}

function encrypted(): string {
  return String(
    ecKey().export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'secret' }),
  );
}

/** Everything that a log could print of an error. */
function caught(work: () => unknown): string {
  try {
    work();
    return '';
  } catch (error) {
    return error instanceof Error ? `${error.stack} ${String(error.cause)}` : String(error);
  }
}
