import type { Credentials } from './credentials.ts';

/** What a token service is asked for (distribution's token.md and oauth.md). */
export type TokenRequest =
  | { readonly method: 'GET'; readonly url: URL; readonly headers: Readonly<Record<string, string>> }
  | { readonly method: 'POST'; readonly url: URL; readonly form: URLSearchParams };

/** How a challenge is answered. */
export type Authorization =
  /** The value of the Authorization header. */
  | { readonly kind: 'header'; readonly value: string }
  /** A token has to be asked for; the header is then `Bearer` with it. */
  | { readonly kind: 'token'; readonly request: TokenRequest }
  | { readonly kind: 'none' };

/** Token services want to know who asks. */
const CLIENT_ID = 'shale';

/**
 * Says how to answer challenges. Pure. A token is preferred to a password: it opens less, and not for long.
 *
 * @param scope what is asked for where the registry does not say.
 */
export function answerChallenges(
  challenges: readonly Challenge[],
  credentials: Credentials | undefined,
  scope: string,
): Authorization {
  const bearer = challenges.find((challenge) => challenge.scheme === 'bearer');
  if (bearer !== undefined) return { kind: 'token', request: tokenRequest(bearer, credentials, scope) };
  const basic = challenges.some((challenge) => challenge.scheme === 'basic') && basicOf(credentials);
  return basic ? { kind: 'header', value: basic } : { kind: 'none' };
}

function tokenRequest(
  { realm, service, scopes }: Extract<Challenge, { scheme: 'bearer' }>,
  credentials: Credentials | undefined,
  scope: string,
): TokenRequest {
  const url = new URL(realm);
  const requested = scopes.length === 0 ? [scope] : scopes;
  if (credentials !== undefined && 'identityToken' in credentials) {
    const form = new URLSearchParams({
      grant_type: 'refresh_token',
      ...(service === undefined ? {} : { service }),
      client_id: CLIENT_ID,
      scope: requested.join(' '),
      refresh_token: credentials.identityToken,
    });
    return { method: 'POST', url, form };
  }
  if (service !== undefined) url.searchParams.set('service', service);
  for (const each of requested) url.searchParams.append('scope', each);
  const basic = basicOf(credentials);
  // Without credentials a token service may still give an anonymous token.
  return { method: 'GET', url, headers: basic === undefined ? {} : { authorization: basic } };
}

/** RFC 7617. @returns undefined for credentials that are no password. */
function basicOf(credentials: Credentials | undefined): string | undefined {
  if (credentials === undefined || 'identityToken' in credentials) return undefined;
  const { username, password } = credentials;
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

/** What a registry asks for with a 401. */
export type Challenge =
  | { readonly scheme: 'basic' }
  | {
      readonly scheme: 'bearer';
      readonly realm: string;
      readonly service?: string;
      /** Each is a right to ask for; none where the registry does not say. */
      readonly scopes: readonly string[];
    };

const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const SEPARATORS = /[\s,]*/y;
const PARAMETER = new RegExp(`(${TOKEN})\\s*=\\s*(?:"((?:[^"\\\\]|\\\\.)*)"|(${TOKEN}))`, 'y');
/** With credentials of its own that are no parameters, as Negotiate has them. */
const SCHEME = new RegExp(`(${TOKEN})(?:[ \\t]+[A-Za-z0-9._~+/-]+=*(?=\\s*(?:,|$)))?`, 'y');

interface Parsed {
  readonly scheme: string;
  readonly parameters: Map<string, string>;
}

/**
 * Reads WWW-Authenticate: one or several challenges, in one header or several joined by commas (RFC 9110, 11.6.1;
 * distribution's token.md). Pure.
 *
 * @returns those that can be answered, in the header's order; what can't be read ends the list.
 */
export function parseChallenges(header: string): Challenge[] {
  return [...split(header)].flatMap(({ scheme, parameters }): Challenge[] => {
    if (scheme === 'basic') return [{ scheme }];
    const realm = parameters.get('realm');
    if (scheme !== 'bearer' || realm === undefined || !URL.canParse(realm)) return [];
    const service = parameters.get('service');
    const scopes = (parameters.get('scope') ?? '').split(/\s+/).filter((scope) => scope !== '');
    return [{ scheme, realm, scopes, ...(service === undefined ? {} : { service }) }];
  });
}

function* split(header: string): Generator<Parsed> {
  let at = 0;
  const match = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const match = pattern.exec(header);
    at += match?.[0].length ?? 0;
    return match;
  };
  let current: Parsed | undefined;
  for (match(SEPARATORS); at < header.length; match(SEPARATORS)) {
    const parameter = current === undefined ? null : match(PARAMETER);
    if (parameter !== null) {
      const [, key = '', quoted, plain = ''] = parameter;
      current?.parameters.set(key.toLowerCase(), quoted?.replace(/\\(.)/g, '$1') ?? plain);
      continue;
    }
    if (current !== undefined) yield current;
    const scheme = match(SCHEME)?.[1];
    if (scheme === undefined) return;
    current = { scheme: scheme.toLowerCase(), parameters: new Map() };
  }
  if (current !== undefined) yield current;
}
