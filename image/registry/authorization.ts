import type { Challenge } from './challenge.ts';
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
  const wanted = scopes.length === 0 ? [scope] : scopes;
  if (credentials !== undefined && 'identityToken' in credentials) {
    const form = new URLSearchParams({
      grant_type: 'refresh_token',
      ...(service === undefined ? {} : { service }),
      client_id: CLIENT_ID,
      scope: wanted.join(' '),
      refresh_token: credentials.identityToken,
    });
    return { method: 'POST', url, form };
  }
  if (service !== undefined) url.searchParams.set('service', service);
  for (const each of wanted) url.searchParams.append('scope', each);
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
