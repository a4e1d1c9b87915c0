import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto';
import { serviceAccountUser, type User } from '../access/attributes.ts';
import { at, isObject, type Json, type JsonObject, stringAt } from '../json.ts';

/** An object that must be there for a token to hold. */
export interface ObjectIdentity {
  readonly name: string;
  readonly uid: string;
}

/** What a token says (Kubernetes, "Managing Service Accounts", "Bound service account tokens"). */
export interface TokenClaims {
  readonly namespace: string;
  readonly serviceAccount: ObjectIdentity;
  readonly pod?: ObjectIdentity;
  readonly node?: ObjectIdentity;
  readonly audiences: readonly string[];
  /** Seconds since the epoch. */
  readonly issuedAt: number;
  readonly expiresAt: number;
  readonly id: string;
}

const ISSUER = 'https://kubernetes.default.svc';

/** @returns claims of a new token. @param lifetime in seconds. */
export function newClaims(
  account: Pick<TokenClaims, 'namespace' | 'serviceAccount' | 'pod' | 'node'>,
  audiences: readonly string[],
  now: Date,
  lifetime: number,
): TokenClaims {
  const issuedAt = Math.floor(now.getTime() / 1000);
  return { ...account, audiences, issuedAt, expiresAt: issuedAt + lifetime, id: randomUUID() };
}

/** @returns a JSON Web Token (RFC 7519) with the claims that Kubernetes gives its own. */
export function signToken(claims: TokenClaims, key: Buffer): string {
  const body = {
    iss: ISSUER,
    sub: serviceAccountUser(claims.namespace, claims.serviceAccount.name).name,
    aud: claims.audiences,
    iat: claims.issuedAt,
    nbf: claims.issuedAt,
    exp: claims.expiresAt,
    jti: claims.id,
    'kubernetes.io': {
      namespace: claims.namespace,
      serviceaccount: claims.serviceAccount,
      ...(claims.pod === undefined ? {} : { pod: claims.pod }),
      ...(claims.node === undefined ? {} : { node: claims.node }),
    },
  };
  const signed = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode(body)}`;
  return `${signed}.${signature(signed, key)}`;
}

/** Of so many tokens it is remembered that the key signed them; each of a client's requests has the same one. */
const MOST_REMEMBERED = 1_000;

/**
 * @returns what reads tokens: the claims of one that this key signed and that holds at the moment; undefined for any
 * other.
 */
export function tokenReader(key: Buffer): (token: string, now: Date) => TokenClaims | undefined {
  const signed = new Map<string, TokenClaims>();
  return (token, now) => {
    const claims = signed.get(token) ?? signedClaims(token, key);
    if (claims === undefined || now.getTime() / 1000 >= claims.expiresAt) {
      signed.delete(token);
      return undefined;
    }
    if (signed.size >= MOST_REMEMBERED && !signed.has(token)) signed.clear();
    signed.set(token, claims);
    return claims;
  };
}

/** @returns the claims of a token that this key signed, though it may have expired. */
function signedClaims(token: string, key: Buffer): TokenClaims | undefined {
  const [header, body, given, ...more] = token.split('.');
  if (header === undefined || body === undefined || given === undefined || more.length > 0) return undefined;
  const expected = Buffer.from(signature(`${header}.${body}`, key));
  const actual = Buffer.from(given);
  if (expected.length !== actual.length || !timingSafeEqual(expected, actual)) return undefined;
  return parseClaims(JSON.parse(Buffer.from(body, 'base64url').toString('utf8')) as Json);
}

/** @returns the user of a token, with what it is bound to. */
export function userOf(claims: TokenClaims): User {
  const { pod, node } = claims;
  return {
    ...serviceAccountUser(claims.namespace, claims.serviceAccount.name),
    uid: claims.serviceAccount.uid,
    extra: {
      'authentication.kubernetes.io/credential-id': [`JTI=${claims.id}`],
      ...(node === undefined
        ? {}
        : {
            'authentication.kubernetes.io/node-name': [node.name],
            'authentication.kubernetes.io/node-uid': [node.uid],
          }),
      ...(pod === undefined
        ? {}
        : {
            'authentication.kubernetes.io/pod-name': [pod.name],
            'authentication.kubernetes.io/pod-uid': [pod.uid],
          }),
    },
  };
}

function parseClaims(body: Json): TokenClaims | undefined {
  const namespace = stringAt(body, 'kubernetes.io', 'namespace');
  const serviceAccount = identity(body, 'serviceaccount');
  const pod = identity(body, 'pod');
  const node = identity(body, 'node');
  if (!isObject(body) || namespace === undefined || serviceAccount === undefined) return undefined;
  const { iat, exp, jti, aud } = body;
  if (typeof iat !== 'number' || typeof exp !== 'number' || typeof jti !== 'string') return undefined;
  return {
    namespace,
    serviceAccount,
    ...(pod === undefined ? {} : { pod }),
    ...(node === undefined ? {} : { node }),
    audiences: Array.isArray(aud) ? aud.map(String) : [],
    issuedAt: iat,
    expiresAt: exp,
    id: jti,
  };
}

function identity(body: Json, field: string): ObjectIdentity | undefined {
  const name = stringAt(at(body, 'kubernetes.io', field), 'name');
  const uid = stringAt(at(body, 'kubernetes.io', field), 'uid');
  return name === undefined || uid === undefined ? undefined : { name, uid };
}

function encode(value: JsonObject | object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

function signature(signed: string, key: Buffer): string {
  return createHmac('sha256', key).update(signed).digest('base64url');
}
