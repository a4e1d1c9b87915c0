/** A real engine behind TLS: who is let in by which certificate. */
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createServer, type Server } from 'node:tls';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { DigestedPullspec } from '../../api/references.ts';
import {
  engineObstacle,
  type StartedEngine,
  startEngine,
} from '../../workshop/sandbox/engine/start-engine.ts';
import { shellEntries, shellObstacle, stockImage } from '../../workshop/sandbox/node/stock-image.ts';
import { pushImage, type SandboxRegistry, startRegistry } from '../../workshop/sandbox/registry.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { buildWithEngine, containerFile, failureOf } from './build-with-engine.ts';

const signal = deadline(300_000);
const obstacle = engineObstacle('podman') ?? shellObstacle();
const title = `an engine over TCP${obstacle === undefined ? '' : ` (skipped: ${obstacle})`}`;

describe.skipIf(obstacle !== undefined)(title, { timeout: patience(120_000) }, () => {
  let dir: string;
  let registry: SandboxRegistry;
  let base: DigestedPullspec;
  let engine: StartedEngine;
  let front: Server;
  let url: string;

  beforeAll(async () => {
    dir = await mkdtemp(path.join(tmpdir(), 'shale-engine-tls-'));
    registry = await startRegistry(path.join(dir, 'registry'));
    base = await pushImage(registry, 'os/stock', { entries: [...stockImage(), ...shellEntries()] }, signal);
    engine = await startEngine({ kind: 'podman', buildKit: false, dir: path.join(dir, 'podman') });
    await makeCertificates(path.join(dir, 'ours'));
    await makeCertificates(path.join(dir, 'strangers'));
    front = await startFront(path.join(dir, 'ours'), new URL(engine.url).pathname);
    url = `tcp://localhost:${(front.address() as AddressInfo).port}`;
  }, patience(90_000));
  afterAll(async () => {
    front.close();
    await engine.stop();
    await registry.stop();
    await rm(dir, { recursive: true });
  }, patience(60_000));

  const build = (tls: string) =>
    buildWithEngine(
      { registry, base, workDir: dir, engine: url, engineTlsDir: path.join(dir, tls), pool: tls, signal },
      containerFile('RUN echo from over there > /usr/share/made'),
    );

  test('builds for a client that has a certificate of its authority', async () => {
    const { result } = await build('ours');
    expect(result.way).toBe('Engine');
  });

  test('is not trusted without a certificate of the given authority', async () => {
    const { reason, message } = await failureOf(build('strangers'));
    expect(reason).toBe('EngineUnavailable');
    expect(message).toContain(url);
  });
});

/** Leaves ca.pem, cert.pem and key.pem, as docker's own clients keep them. */
async function makeCertificates(to: string): Promise<void> {
  await mkdir(to);
  const file = (name: string) => path.join(to, name);
  const openssl = (...args: string[]) => execa('openssl', args);
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  await openssl(
    'req',
    '-x509',
    ...key,
    '-keyout',
    file('ca.key'),
    '-out',
    file('ca.pem'),
    '-subj',
    '/CN=ca',
    '-days',
    '2',
  );
  await openssl(
    'req',
    ...key,
    '-keyout',
    file('key.pem'),
    '-out',
    file('csr'),
    '-subj',
    '/CN=localhost',
    '-addext',
    'subjectAltName=DNS:localhost',
  );
  const by = ['-CA', file('ca.pem'), '-CAkey', file('ca.key'), '-CAcreateserial', '-days', '2'];
  await openssl(
    'x509',
    '-req',
    '-in',
    file('csr'),
    '-out',
    file('cert.pem'),
    '-copy_extensions',
    'copy',
    ...by,
  );
}

/** What dockerd's --tlsverify does, before an engine that only has a socket. */
async function startFront(tls: string, socketPath: string): Promise<Server> {
  const [ca, cert, key] = await Promise.all(
    ['ca.pem', 'cert.pem', 'key.pem'].map((name) => readFile(path.join(tls, name), 'utf8')),
  );
  const options = { ca, cert, key, requestCert: true, rejectUnauthorized: true };
  const server = createServer(options as Parameters<typeof createServer>[0], (client) => {
    const behind = connect(socketPath);
    const both = [pipeline(client, behind), pipeline(behind, client)];
    Promise.all(both).catch(() => {
      client.destroy();
      behind.destroy();
    });
  });
  server.on('tlsClientError', () => undefined);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}
