import type { Credentials } from './credentials.ts';

/** What a registry asks for with a 401 (RFC 9110 11.6.1; distribution's token.md). */
export type Challenge =
  | { readonly scheme: 'basic' }
  | { readonly scheme: 'bearer'; readonly realm: string; readonly service?: string; readonly scope?: string }
  | { readonly scheme: 'unknown' };

/** Reads a WWW-Authenticate header. */
export function parseChallenge(header: string): Challenge {
  const scheme = /^\s*(\w+)/.exec(header)?.[1]?.toLowerCase();
  if (scheme === 'basic') return { scheme };
  const parameters = new Map(
    [...header.matchAll(/(\w+)="([^"]*)"/g)].map(([, key = '', value = '']) => [key.toLowerCase(), value]),
  );
  const realm = parameters.get('realm');
  if (scheme !== 'bearer' || realm === undefined || !URL.canParse(realm)) return { scheme: 'unknown' };
  const service = parameters.get('service');
  const scope = parameters.get('scope');
  return {
    scheme,
    realm,
    ...(service === undefined ? {} : { service }),
    ...(scope === undefined ? {} : { scope }),
  };
}

/**
 * Answers a challenge.
 *
 * @param scope what is asked for where the registry does not say.
 * @param fetchToken gets a token from the realm.
 * @returns the value of the Authorization header; undefined where there is no answer to give.
 */
export async function authorize(
  challenge: Challenge,
  credentials: Credentials | undefined,
  scope: string,
  fetchToken: (url: URL, headers: Record<string, string>) => Promise<string>,
): Promise<string | undefined> {
  const basic =
    credentials &&
    `Basic ${Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')}`;
  switch (challenge.scheme) {
    case 'basic':
      return basic;
    case 'bearer': {
      const url = new URL(challenge.realm);
      if (challenge.service !== undefined) url.searchParams.set('service', challenge.service);
      url.searchParams.set('scope', challenge.scope ?? scope);
      // Without credentials a token service may still give an anonymous token.
      return `Bearer ${await fetchToken(url, basic === undefined ? {} : { authorization: basic })}`;
    }
    case 'unknown':
      return undefined;
  }
}
