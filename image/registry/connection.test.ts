import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { buffer, text } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import { deadline, patience } from '../../test/fixtures/patience.ts';
import { startScriptedServer } from '../../test/fixtures/scripted-server.ts';
import { createAuthority } from '../../x509/certificate.ts';
import { type Body, createConnections, isRepeatable } from './connection.ts';

const signal = deadline(60_000);
const authority = createAuthority('ca of the registry', new Date(), 600_000);
const get = { method: 'GET', headers: {}, signal };
/** Loopback, where nothing listens. */
const NOBODY = '127.9.9.9';

/** @returns its `127.0.0.1:port`; it is closed after the test. */
async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function startTlsServer(answer: RequestListener): Promise<URL> {
  const { certPem, keyPem } = authority.issueServer({ dns: [], ipv4: ['127.0.0.1'] });
  return new URL(`https://${await listen(createTlsServer({ cert: certPem, key: keyPem }, answer))}/v2/`);
}

describe('a registry with a certificate of its own', () => {
  const tls = () => startTlsServer((_request, response) => response.end('by TLS'));

  test('is reached with the authority that is configured for its name', async () => {
    const url = await tls();
    const caFor = (name: string) => (name === url.host ? authority.caPem : undefined);
    expect(await text(await createConnections({ caFor }).open(url, get))).toBe('by TLS');
  });

  test.each([
    ['none', () => undefined],
    ['another one', () => createAuthority('another', new Date(), 600_000).caPem],
  ])('is refused where the authority that is configured is %s', async (_which, caFor) => {
    const url = await tls();
    await expect(createConnections({ caFor }).open(url, get)).rejects.toThrow(/certificate/);
  });

  test('is reached whatever its certificate where it is insecure, and never over plain HTTP', async () => {
    const url = await tls();
    expect(await text(await createConnections({ insecure: new Set([url.host]) }).open(url, get))).toBe(
      'by TLS',
    );
  });
});

test.each([
  [`https://${NOBODY}/`, [NOBODY, `${NOBODY}:443`]],
  [`https://${NOBODY}:5000/`, [`${NOBODY}:5000`]],
])('the authority of %s is looked for by the names %j', async (url, names) => {
  const asked: string[] = [];
  const caFor = (name: string) => {
    asked.push(name);
    return undefined;
  };
  await createConnections({ caFor })
    .open(new URL(url), get)
    .catch(() => undefined);
  expect(asked).toEqual(names);
});

describe('plain HTTP', () => {
  test.each([
    [`http://${NOBODY}/`, NOBODY, true],
    [`http://${NOBODY}/`, `${NOBODY}:80`, true],
    [`http://${NOBODY}/`, `${NOBODY}:443`, false],
    [`http://${NOBODY}:81/`, NOBODY, false],
    [`http://${NOBODY}:81/`, `${NOBODY}:81`, true],
  ])('to %s is allowed to %s: %s', async (url, name, allowed) => {
    const opened = createConnections({ plainHttp: new Set([name]) }).open(new URL(url), get);
    const why = await opened.then(
      () => 'an answer',
      (error: unknown) => error,
    );
    if (allowed) expect(why).not.toBeInstanceOf(TypeError);
    else expect(why).toEqual(new TypeError(`${new URL(url).host} is not configured for plain HTTP`));
  });

  test('is tried at an insecure registry without TLS, whose own error is thrown where that fails, too', async () => {
    const open = createConnections({ insecure: new Set([`${NOBODY}:1`]) }).open(
      new URL(`https://${NOBODY}:1/`),
      get,
    );
    await expect(open).rejects.toMatchObject({ code: 'ECONNREFUSED', address: NOBODY });
  });

  test('is remembered of an insecure registry, which is asked for TLS once', async () => {
    let handshakes = 0;
    const server = createServer((_request, response) => response.end());
    server.on('clientError', (_error, socket) => {
      handshakes += 1;
      socket.end('HTTP/1.1 400 Bad Request\r\n\r\n');
    });
    const url = new URL(`https://${await listen(server)}/`);
    const connections = createConnections({ insecure: new Set([url.host]) });
    for (const _ of [1, 2]) (await connections.open(url, get)).resume();
    expect(handshakes).toBe(1);
  });

  test('is not tried once the signal is aborted', async () => {
    const stop = new AbortController();
    stop.abort();
    const open = createConnections({ insecure: new Set([NOBODY]) }).open(new URL(`https://${NOBODY}/`), {
      ...get,
      signal: stop.signal,
    });
    await expect(open).rejects.toMatchObject({ name: 'AbortError' });
  });
});

async function* pieces() {
  yield Buffer.from('a');
  yield Buffer.from('bc');
}

test.each<[string, Body | undefined, string, string | undefined, boolean]>([
  ['none', undefined, '', '0', true],
  ['bytes', Buffer.from('abc'), 'abc', '3', true],
  ['parts', [Buffer.from('a'), Buffer.from('bc')], 'abc', '3', true],
  ['bytes as they come', { length: 3, bytes: pieces() }, 'abc', '3', false],
])('a body of %s is sent with its length', async (_what, body, received, length, repeatable) => {
  const seen: [string, string | undefined, string | undefined][] = [];
  const server = await startScriptedServer((request, response) => {
    void buffer(request).then((bytes) => {
      seen.push([bytes.toString(), request.headers['content-length'], request.headers['user-agent']]);
      response.end();
    });
  });
  onTestFinished(() => server.stop());
  const connections = createConnections({ plainHttp: new Set([server.host]) });
  const outgoing = { ...get, method: 'PUT', ...(body === undefined ? {} : { body }) };
  (await connections.open(new URL(server.url), outgoing)).resume();
  expect(seen).toEqual([[received, length, 'shale']]);
  expect(isRepeatable(body)).toBe(repeatable);
});

test('a server that says nothing is given up, by its name', async () => {
  const server = await startScriptedServer(() => undefined);
  onTestFinished(() => server.stop());
  const silenceMs = patience(50);
  const connections = createConnections({ plainHttp: new Set([server.host]), silenceMs });
  await expect(connections.open(new URL(server.url), get)).rejects.toThrow(
    `${server.host} sent nothing for ${silenceMs / 1000} s`,
  );
});
