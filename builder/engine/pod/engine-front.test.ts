import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, get } from 'node:http';
import { Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { connect } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAuthority, type Identity } from '../../../x509/certificate.ts';
import { type EngineFront, startEngineFront } from './engine-front.ts';

const authority = createAuthority('ca of engine-1', new Date(), 600_000);
const stranger = createAuthority('ca of engine-1', new Date(), 600_000);
/** What Node reports about the process, such as listeners that pile up. */
const warnings: Error[] = [];
const warned = (warning: Error) => void warnings.push(warning);
let dir: string;
let front: EngineFront;
/** Paths that the engine was asked for. */
const asked: string[] = [];
const engine = createServer((incoming, response) => {
  asked.push(incoming.url ?? '');
  incoming.pipe(response);
});

beforeAll(async () => {
  process.on('warning', warned);
  dir = await mkdtemp(path.join(tmpdir(), 'shale-front-'));
  const { certPem, keyPem } = authority.issueServer({ dns: ['engine-1'], ipv4: [] });
  await writeFile(path.join(dir, 'ca.crt'), authority.caPem);
  await writeFile(path.join(dir, 'tls.crt'), certPem);
  await writeFile(path.join(dir, 'tls.key'), keyPem);
  const socket = path.join(dir, 'engine.sock');
  front = await startEngineFront({ socket, tlsDir: dir, address: '127.0.0.1', port: 0 });
});
afterAll(async () => {
  process.off('warning', warned);
  await front.close();
  engine.close();
  await rm(dir, { recursive: true });
});

const post = (identity: Identity | undefined, ca: string, body = 'context') =>
  new Promise<string>((resolve, reject) => {
    const own = identity === undefined ? {} : { cert: identity.certPem, key: identity.keyPem };
    const agent = new Agent({ ca, servername: 'engine-1', ...own });
    const at = { host: '127.0.0.1', port: front.port, path: '/build', method: 'POST', agent };
    const sent = request(at, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
      });
      response.on('end', () => resolve(text));
    });
    sent.on('error', reject);
    sent.end(body);
  });

test('an engine that is not there yet closes the connection', async () => {
  await expect(post(authority.issueClient('builder'), authority.caPem)).rejects.toThrow();
  engine.listen(path.join(dir, 'engine.sock'));
  await once(engine, 'listening');
});

test('the builder reaches the engine, with a context of some megabytes', async () => {
  const body = 'x'.repeat(3_000_000);
  expect(await post(authority.issueClient('builder'), authority.caPem, body)).toBe(body);
  expect(asked).toEqual(['/build']);
  expect(warnings).toEqual([]);
});

test.each<[string, Identity | undefined]>([
  ['no certificate', undefined],
  ["another engine's certificate", stranger.issueClient('builder')],
  ["the server's own", authority.issueServer({ dns: ['engine-1'], ipv4: [] })],
])('who has %s does not reach the engine', async (_, identity) => {
  asked.length = 0;
  await expect(post(identity, authority.caPem)).rejects.toThrow();
  expect(asked).toEqual([]);
});

test('the builder does not talk to another server', async () => {
  await expect(post(authority.issueClient('builder'), stranger.caPem)).rejects.toThrow(/certificate/);
});

test('who speaks no TLS does not reach the engine', async () => {
  asked.length = 0;
  const plain = get({ host: '127.0.0.1', port: front.port, path: '/version' });
  await expect(once(plain, 'response')).rejects.toThrow();
  expect(asked).toEqual([]);
});

test('closing it closes its connections, also those by which nothing comes', async () => {
  const own = await startEngineFront({
    socket: path.join(dir, 'engine.sock'),
    tlsDir: dir,
    address: '127.0.0.1',
    port: 0,
  });
  const { certPem, keyPem } = authority.issueClient('builder');
  const options = { ca: authority.caPem, cert: certPem, key: keyPem, servername: 'engine-1' };
  const client = connect({ host: '127.0.0.1', port: own.port, ...options });
  client.on('error', () => undefined);
  const reached = once(engine, 'connection');
  await once(client, 'secureConnect');
  // The front has the connection once it has one to the engine.
  await reached;
  const closed = once(client, 'close');
  await own.close();
  await closed;
});
