import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import * as der from './der.ts';

/** A key and the certificate that names it, in PEM. */
export interface Identity {
  readonly certPem: string;
  readonly keyPem: string;
}

/** A certificate authority whose key exists only in this process, for as long as it is referenced. */
export interface Authority {
  readonly caPem: string;
  /** @returns a server certificate for these addresses. */
  issueServer(names: { readonly dns: readonly string[]; readonly ipv4: readonly string[] }): Identity;
  /** @returns a client certificate with that subject. */
  issueClient(commonName: string): Identity;
}

const OID = {
  commonName: '2.5.4.3',
  ecdsaWithSha256: '1.2.840.10045.4.3.2',
  basicConstraints: '2.5.29.19',
  keyUsage: '2.5.29.15',
  extendedKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
  clientAuth: '1.3.6.1.5.5.7.3.2',
  subjectAltName: '2.5.29.17',
  subjectKeyIdentifier: '2.5.29.14',
  authorityKeyIdentifier: '2.5.29.35',
} as const;

/** RFC 5280, 4.2.1.3: the bits count from the left. */
const KEY_CERT_SIGN = Buffer.from([0b0000_0100]);
const DIGITAL_SIGNATURE = Buffer.from([0b1000_0000]);

/** Certificates are valid an hour longer in both directions, for machines whose clocks differ. */
const CLOCK_SKEW_MS = 3_600_000;
const YEAR_MS = 365 * 24 * 3_600_000;

interface Certificate {
  readonly subject: string;
  readonly issuer: string;
  readonly publicKey: KeyObject;
  readonly signingKey: KeyObject;
  readonly extensions: readonly Buffer[];
}

/** How long the certificates of an authority are valid. */
interface Validity {
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/**
 * @param commonName subject of the CA certificate.
 * @param now the start of the validity of its certificates.
 * @param lifetimeMs ms after which they are no longer needed.
 */
export function createAuthority(commonName: string, now: Date, lifetimeMs = YEAR_MS): Authority {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const validity = {
    notBefore: new Date(now.getTime() - CLOCK_SKEW_MS),
    notAfter: new Date(now.getTime() + lifetimeMs + CLOCK_SKEW_MS),
  };
  const issue = (subject: string, usage: string, names: readonly Buffer[]): Identity => {
    const own = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const extensions = [
      criticalExtension(OID.basicConstraints, der.sequence()),
      criticalExtension(OID.keyUsage, der.bitString(DIGITAL_SIGNATURE, 7)),
      extension(OID.extendedKeyUsage, der.sequence(der.objectIdentifier(usage))),
      ...(names.length === 0 ? [] : [extension(OID.subjectAltName, der.sequence(...names))]),
      extension(OID.authorityKeyIdentifier, der.sequence(der.element(0x80, keyIdentifier(publicKey)))),
    ];
    const certPem = makeCertificate(
      { subject, issuer: commonName, publicKey: own.publicKey, signingKey: privateKey, extensions },
      validity,
    );
    return { certPem, keyPem: own.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
  };
  const extensions = [
    criticalExtension(OID.basicConstraints, der.sequence(der.boolean(true))),
    criticalExtension(OID.keyUsage, der.bitString(KEY_CERT_SIGN, 2)),
    extension(OID.subjectKeyIdentifier, der.octetString(keyIdentifier(publicKey))),
  ];
  return {
    caPem: makeCertificate(
      { subject: commonName, issuer: commonName, publicKey, signingKey: privateKey, extensions },
      validity,
    ),
    issueServer: ({ dns, ipv4 }) =>
      issue(dns[0] ?? ipv4[0] ?? 'server', OID.serverAuth, [
        ...dns.map((name) => der.element(0x82, Buffer.from(name, 'ascii'))),
        ...ipv4.map((address) => der.element(0x87, Buffer.from(address.split('.').map(Number)))),
      ]),
    issueClient: (subject) => issue(subject, OID.clientAuth, []),
  };
}

/** RFC 5280, 4.1. */
function makeCertificate(certificate: Certificate, { notBefore, notAfter }: Validity): string {
  const algorithm = der.sequence(der.objectIdentifier(OID.ecdsaWithSha256));
  const body = der.sequence(
    der.element(0xa0, der.derInteger(Buffer.from([2]))),
    der.derInteger(serialNumber()),
    algorithm,
    name(certificate.issuer),
    der.sequence(time(notBefore), time(notAfter)),
    name(certificate.subject),
    certificate.publicKey.export({ type: 'spki', format: 'der' }),
    der.element(0xa3, der.sequence(...certificate.extensions)),
  );
  const signature = sign('sha256', body, certificate.signingKey);
  const bytes = der.sequence(body, algorithm, der.bitString(signature));
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? [];
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
}

/** RFC 5280, 4.1.2.5: UTCTime for dates through 2049. */
function time(date: Date): Buffer {
  return date.getUTCFullYear() < 2050 ? der.utcTime(date) : der.generalizedTime(date);
}

/** A positive integer of 16 bytes: the first bit is 0 and the second is 1, so DER has only one way to write it. */
function serialNumber(): Buffer {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40;
  return bytes;
}

function name(commonName: string): Buffer {
  const attribute = der.sequence(der.objectIdentifier(OID.commonName), der.utf8String(commonName));
  return der.sequence(der.set(attribute));
}

function extension(id: string, content: Buffer): Buffer {
  return der.sequence(der.objectIdentifier(id), der.octetString(content));
}

/** RFC 5280, 4.2: who doesn't know it must refuse the certificate. */
function criticalExtension(id: string, content: Buffer): Buffer {
  return der.sequence(der.objectIdentifier(id), der.boolean(true), der.octetString(content));
}

function keyIdentifier(key: KeyObject): Buffer {
  return createHash('sha1')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest();
}
