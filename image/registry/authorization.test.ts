import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { deadline } from '../../test/fixtures/patience.ts';
import { noPause } from '../../test/fixtures/registry/pauses.ts';
import { startScriptedRegistry } from '../../test/fixtures/registry/scripted-registry.ts';
import { digestOf } from '../digest.ts';
import { parseReference } from '../reference.ts';
import { answerChallenges, type Challenge, parseChallenges } from './authorization.ts';
import type { Credentials } from './credentials.ts';
import { createRegistryClient } from './registry-client.ts';
import type { RegistryError } from './registry-error.ts';

const signal = deadline(300_000);
const digest = digestOf('content');
const password: Credentials = { username: 'user', password: 'hunter2' };
const BASIC = `Basic ${Buffer.from('user:hunter2').toString('base64')}`;

describe('challenges are answered', () => {
  const bearer = { scheme: 'bearer', realm: 'https://a.io/token?x=1', scopes: [] } as const;
  const basic = { scheme: 'basic' } as const;

  test.each([
    ['by a password', [basic], password, { kind: 'header', value: BASIC }],
    ['not without credentials', [basic], undefined, { kind: 'none' }],
    [
      'not with an identity token where a password is asked for',
      [basic],
      { identityToken: 't' },
      { kind: 'none' },
    ],
    ['not where none is known', [], password, { kind: 'none' }],
  ])('%s', (_name, challenges, credentials, answer) => {
    expect(answerChallenges(challenges, credentials, 'repository:os:pull')).toEqual(answer);
  });

  test('by a token where both are offered, with every right that is named', () => {
    const challenge = { ...bearer, service: 's', scopes: ['repository:a:pull', 'repository:b:pull'] };
    const answer = answerChallenges([basic, challenge], password, 'unused');
    if (answer.kind !== 'token' || answer.request.method !== 'GET') throw new Error('no token is asked for');
    expect(answer.request.url.href).toBe(
      'https://a.io/token?x=1&service=s&scope=repository%3Aa%3Apull&scope=repository%3Ab%3Apull',
    );
    expect(answer.request.headers).toEqual({ authorization: BASIC });
  });

  test('by an anonymous token without credentials', () => {
    const answer = answerChallenges([bearer], undefined, 'repository:os:pull');
    expect(answer).toMatchObject({ kind: 'token', request: { method: 'GET', headers: {} } });
  });

  test('by a token for an identity token, which goes in the body alone', () => {
    const answer = answerChallenges(
      [{ ...bearer, service: 's' }],
      { identityToken: 'i' },
      'repository:os:pull',
    );
    if (answer.kind !== 'token' || answer.request.method !== 'POST') throw new Error('no token is asked for');
    expect(answer.request.url.href).toBe(bearer.realm);
    expect(Object.fromEntries(answer.request.form)).toEqual({
      grant_type: 'refresh_token',
      service: 's',
      client_id: 'shale',
      scope: 'repository:os:pull',
      refresh_token: 'i',
    });
  });
});

/** A registry that lets in whoever has the token of the day, with its own token service. */
async function tokenRegistry(options: { readonly oauth?: boolean } = {}) {
  const seen: string[] = [];
  let day = 1;
  const host = await startScriptedRegistry((request, response) => {
    void (async () => {
      const { authorization = '-' } = request.headers;
      if (request.url?.startsWith('/token') === true) {
        seen.push(`${request.method} token ${authorization} ${await text(request)}`.trim());
        const key = options.oauth === true ? 'access_token' : 'token';
        response.end(JSON.stringify({ [key]: `day${day}` }));
      } else if (authorization === `Bearer day${day}`) {
        seen.push(`${request.method} ok`);
        response.writeHead(200).end();
      } else {
        seen.push(`${request.method} 401`);
        const realm = `http://${host}/token`;
        const challenges = [
          `Basic realm="r"`,
          `Bearer realm="${realm}",service="s",scope="repository:os:pull"`,
        ];
        response.writeHead(401, { 'www-authenticate': challenges }).end();
      }
    })();
  });
  const client = (credentials?: Credentials) =>
    createRegistryClient({
      plainHttp: new Set([host]),
      ...(credentials === undefined ? {} : { auths: new Map([[host, credentials]]) }),
    });
  return {
    seen,
    nextDay: () => {
      day += 1;
    },
    ask: (known: ReturnType<typeof client>) => known.hasBlob(parseReference(`${host}/os`), digest, signal),
    client,
  };
}

describe('a registry with a token service', () => {
  test('is asked with a token, which is used again until it no longer works', async () => {
    const { seen, nextDay, ask, client } = await tokenRegistry();
    const known = client(password);
    await ask(known);
    await ask(known);
    nextDay();
    await ask(known);
    expect(seen).toEqual([
      'HEAD 401',
      `GET token ${BASIC}`,
      'HEAD ok',
      'HEAD ok',
      'HEAD 401',
      `GET token ${BASIC}`,
      'HEAD ok',
    ]);
  });

  test('gives a token for an identity token', async () => {
    const { seen, ask, client } = await tokenRegistry({ oauth: true });
    expect(await ask(client({ identityToken: 'secret' }))).toBe(true);
    expect(seen[1]).toMatch(
      /^POST token - grant_type=refresh_token&service=s&client_id=shale&scope=.*&refresh_token=secret$/,
    );
  });
});

test('refused credentials are not tried again, and never shown', async () => {
  let count = 0;
  const host = await startScriptedRegistry((_request, response) => {
    count += 1;
    response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end();
  });
  const client = createRegistryClient({ plainHttp: new Set([host]), auths: new Map([[host, password]]) });
  const error = (await client
    .hasBlob(parseReference(`${host}/os`), digest, signal)
    .catch((caught: unknown) => caught)) as RegistryError;
  expect(error).toMatchObject({ status: 401, temporary: false });
  expect(error.message).not.toContain('hunter2');
  expect(count).toBe(2);
});

test.each([
  ['{}', 502, /has no token/],
  ['none', 502, /has no token/],
])('a token service that answers %j is an error that names it', async (answer, status, why) => {
  const host = await startScriptedRegistry((request, response) => {
    if (request.url === '/token?scope=repository%3Aos%3Apull') response.end(answer);
    else response.writeHead(401, { 'www-authenticate': `Bearer realm="http://${host}/token"` }).end();
  });
  const client = createRegistryClient({ plainHttp: new Set([host]), pause: noPause });
  const asking = client.hasBlob(parseReference(`${host}/os`), digest, signal);
  await expect(asking).rejects.toMatchObject({ status });
  await expect(asking).rejects.toThrow(why);
});

test.each([
  [1_000_000, true],
  [1_000_001, false],
])('a token of an answer of %i bytes is read: %s', async (size, read) => {
  const host = await startScriptedRegistry((request, response) => {
    if (request.url?.startsWith('/token') === true) response.end('{"token":"t"}'.padStart(size));
    else if (request.headers.authorization === 'Bearer t') response.end();
    else response.writeHead(401, { 'www-authenticate': `Bearer realm="http://${host}/token"` }).end();
  });
  const client = createRegistryClient({ plainHttp: new Set([host]), pause: noPause });
  const asking = client.hasBlob(parseReference(`${host}/os`), digest, signal);
  if (read) expect(await asking).toBe(true);
  else await expect(asking).rejects.toThrow('has no token');
});

test('a token service without TLS is not told a password', async () => {
  const told: (string | undefined)[] = [];
  const service = await startScriptedRegistry((request, response) => {
    told.push(request.headers.authorization);
    response.end('{"token":"t"}');
  });
  const host = await startScriptedRegistry((_request, response) =>
    response.writeHead(401, { 'www-authenticate': `Bearer realm="http://${service}/token"` }).end(),
  );
  const client = createRegistryClient({ plainHttp: new Set([host]), auths: new Map([[host, password]]) });
  await expect(client.hasBlob(parseReference(`${host}/os`), digest, signal)).rejects.toThrow(
    `${service} is not configured for plain HTTP`,
  );
  expect(told).toEqual([]);
});

describe('credentials stay with the registry', () => {
  /** Notes what it is shown, and asks for more. */
  async function stranger(answer: (request: IncomingMessage, response: ServerResponse) => void) {
    const shown: (string | undefined)[] = [];
    const host = await startScriptedRegistry((request, response) => {
      shown.push(request.headers.authorization);
      request.resume();
      request.on('end', () => answer(request, response));
    });
    return { host, shown };
  }

  /** Wants a password, and then sends one elsewhere. */
  const registryTo = (location: () => string, status = 307) =>
    startScriptedRegistry((request, response) => {
      request.resume();
      if (request.headers.authorization === undefined) {
        response.writeHead(401, { 'www-authenticate': 'Basic' }).end();
      } else response.writeHead(status, { location: location() }).end();
    });

  test('when it redirects to storage', async () => {
    const storage = await stranger((_request, response) => response.end('content'));
    const host = await registryTo(() => `http://${storage.host}/blob`);
    const client = createRegistryClient({
      plainHttp: new Set([host, storage.host]),
      auths: new Map([[host, password]]),
    });
    let content = '';
    const blob = { digest, size: 7, mediaType: '' };
    for await (const chunk of client.readBlob(parseReference(`${host}/os`), blob, signal))
      content += Buffer.from(chunk).toString();
    expect(content).toBe('content');
    expect(storage.shown).toEqual([undefined]);
  });

  test('when the storage asks for them, or has its own token service', async () => {
    const storage = await stranger((_request, response) =>
      response
        .writeHead(401, { 'www-authenticate': `Basic, Bearer realm="http://${storage.host}/token"` })
        .end(),
    );
    const host = await registryTo(() => `http://${storage.host}/blob`);
    const client = createRegistryClient({
      plainHttp: new Set([host, storage.host]),
      auths: new Map([[host, password]]),
    });
    await expect(client.hasBlob(parseReference(`${host}/os`), digest, signal)).rejects.toMatchObject({
      status: 401,
    });
    expect(storage.shown).toEqual([undefined]);
  });

  test('when the storage redirects back', async () => {
    const shown: (string | undefined)[] = [];
    const storage = await stranger((_request, response) =>
      response.writeHead(307, { location: `http://${host}/back` }).end(),
    );
    const host: string = await startScriptedRegistry((request, response) => {
      if (request.url === '/back') {
        shown.push(request.headers.authorization);
        response.end();
      } else if (request.headers.authorization === undefined) {
        response.writeHead(401, { 'www-authenticate': 'Basic' }).end();
      } else response.writeHead(307, { location: `http://${storage.host}/blob` }).end();
    });
    const client = createRegistryClient({
      plainHttp: new Set([host, storage.host]),
      auths: new Map([[host, password]]),
    });
    expect(await client.hasBlob(parseReference(`${host}/os`), digest, signal)).toBe(true);
    expect(shown).toEqual([undefined]);
  });

  test('when it takes uploads elsewhere', async () => {
    const uploads = await stranger((_request, response) => response.writeHead(201).end());
    const host = await registryTo(() => `http://${uploads.host}/upload?state=1`, 202);
    const client = createRegistryClient({
      plainHttp: new Set([host, uploads.host]),
      auths: new Map([[host, password]]),
    });
    await client.putBlob(parseReference(`${host}/os`), Buffer.from('content'), signal);
    expect(uploads.shown).toEqual([undefined]);
  });
});

const bearer = (more: Partial<Extract<Challenge, { scheme: 'bearer' }>> = {}): Challenge => ({
  scheme: 'bearer',
  realm: 'https://a.io/token',
  scopes: [],
  ...more,
});

test.each<[string, Challenge[]]>([
  ['', []],
  ['Basic realm="r"', [{ scheme: 'basic' }]],
  ['basic', [{ scheme: 'basic' }]],
  ['Bearer realm="https://a.io/token"', [bearer()]],
  [
    'Bearer realm="https://a.io/token",service="s",scope="repository:os:pull,push"',
    [bearer({ service: 's', scopes: ['repository:os:pull,push'] })],
  ],
  [
    'Bearer realm="https://a.io/token", scope="repository:a:pull repository:b:pull"',
    [bearer({ scopes: ['repository:a:pull', 'repository:b:pull'] })],
  ],
  ['BEARER Realm = "https://a.io/token" , Service=s', [bearer({ service: 's' })]],
  ['Bearer realm="https://a.io/token",service="a \\"b\\", Basic"', [bearer({ service: 'a "b", Basic' })]],
  ['Basic realm="r", Bearer realm="https://a.io/token"', [{ scheme: 'basic' }, bearer()]],
  ['Bearer realm="https://a.io/token", Basic realm="r"', [bearer(), { scheme: 'basic' }]],
  ['Negotiate, Basic realm="r"', [{ scheme: 'basic' }]],
  ['Negotiate YWJj==, Basic realm="r"', [{ scheme: 'basic' }]],
  ['Digest realm="r", nonce="n", Basic', [{ scheme: 'basic' }]],
  ['Digest realm="https://a.io/token", nonce="n"', []],
  ['Bearer realm="nowhere"', []],
  ['Bearer service="s"', []],
  ['Bearer', []],
  ['Basic realm="r", "?', [{ scheme: 'basic' }]],
])('%j', (header, challenges) => {
  expect(parseChallenges(header)).toEqual(challenges);
});

test('whatever the header, it is read to an end', () => {
  const piece = fc.constantFrom('Basic', 'Bearer', 'realm', '=', '"', ',', ' ', 'https://a.io', '\\', 'ü');
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(piece).map((pieces) => pieces.join('')),
      ),
      (header) => {
        for (const challenge of parseChallenges(header))
          expect(['basic', 'bearer']).toContain(challenge.scheme);
      },
    ),
  );
});

test('a realm, a service and scopes come through quoting as they were', () => {
  const text = fc.string({ unit: 'grapheme-ascii' });
  fc.assert(
    fc.property(text, (service) => {
      const quoted = service.replace(/["\\]/g, '\\$&');
      const header = `Bearer realm="https://a.io/token",service="${quoted}", Basic`;
      expect(parseChallenges(header)).toEqual([bearer({ service }), { scheme: 'basic' }]);
    }),
  );
});
