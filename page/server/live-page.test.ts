import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { networkInterfaces, tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { connect } from 'node:tls';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { findNeedles, needlesOf, needlesOfKey, newCanary } from '../../test/e2e/canaries.ts';
import { MemoryCluster } from '../../test/fixtures/fleet/memory-cluster.ts';
import { patience } from '../../test/fixtures/patience.ts';
import { aFleet } from '../../test/page/fleet.ts';
import { LEASE_NAMESPACE } from '../../test/page/fleet-node.ts';
import { memoryCaches } from '../../test/page/memory-caches.ts';
import { createAuthority } from '../../x509/certificate.ts';
import { type LivePageOptions, livePage } from './live-page.ts';

interface Line {
  readonly msg: string;
  readonly port?: number;
  readonly tls?: boolean;
  readonly err?: { readonly message: string };
}

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'shale-live-page-'));
  await writeFile(path.join(directory, 'index.html'), '<title>the page</title>');
  vi.stubEnv('SHALE_PAGE_DIR', directory);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(directory, { recursive: true });
});

/** A page that is being served, or waits until it can be. */
async function serve(more: Partial<LivePageOptions> = {}) {
  const lines: Line[] = [];
  let text = '';
  const write = (line: string) => {
    text += line;
    lines.push(JSON.parse(line));
  };
  const log = pino({}, { write });
  const options = { port: 0, leaseNamespace: LEASE_NAMESPACE, ...more };
  const page = await livePage(
    new MemoryCluster().client(),
    memoryCaches(aFleet({}, Date.now())),
    options,
    log,
  );
  const stop = new AbortController();
  const ended = page.serve(stop.signal);
  ended.catch(() => undefined);
  onTestFinished(() => stop.abort());
  const logged = (message: string) => lines.filter(({ msg }) => msg.includes(message));
  return {
    logged,
    /** Everything, as it was logged. */
    text: () => text,
    /** Resolves with the line that has the message, once it was logged. */
    line: (message: string) =>
      vi.waitFor(() => logged(message)[0] ?? expect.fail(`not logged: ${message}`), {
        timeout: patience(5_000),
        interval: 5,
      }),
    notReady: page.notReady,
    end: async () => {
      stop.abort();
      await ended;
    },
  };
}

const issued = () => createAuthority('page', new Date()).issueServer({ dns: [], ipv4: ['127.0.0.1'] });

/** Puts a new certificate where the kubelet would. @returns its fingerprint and its private key. */
async function putIdentity(): Promise<{ readonly fingerprint: string; readonly keyPem: string }> {
  const { certPem, keyPem } = issued();
  await writeFile(path.join(directory, 'tls.key'), keyPem);
  await writeFile(path.join(directory, 'tls.crt'), certPem);
  return { fingerprint: new X509Certificate(certPem).fingerprint256, keyPem };
}

const putCertificate = async () => (await putIdentity()).fingerprint;

async function servedFingerprint(port: number | undefined): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port: port ?? 0, rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const { fingerprint256 } = socket.getPeerCertificate();
  socket.destroy();
  return fingerprint256;
}

test('without a certificate it is served on loopback alone, until the signal', async () => {
  const { line, logged, notReady, end } = await serve();
  const { port, tls } = await line('is served');
  expect(tls).toBe(false);
  await vi.waitUntil(() => notReady() === undefined, { timeout: patience(5_000), interval: 5 });
  expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toContain('the page');
  await expect(fetch(`http://127.0.0.2:${port}/`)).rejects.toThrow();
  const others = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  for (const { address } of others.filter(({ internal, family }) => !internal && family === 'IPv4')) {
    await expect(fetch(`http://${address}:${port}/`)).rejects.toThrow();
  }
  await end();
  await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow();
  expect(logged('certificate')).toEqual([]);
});

test('it waits for its certificate, logs each reason once, and serves by TLS then', async () => {
  const { line, logged, notReady } = await serve({ tlsDir: directory, checkMs: 5 });
  await line('waiting for the certificate');
  expect(notReady()).toBe(`waiting for tls.crt and tls.key in ${directory}`);
  const fingerprint = await putCertificate();
  const { port, tls } = await line('is served');
  await vi.waitUntil(() => notReady() === undefined, { timeout: patience(5_000), interval: 5 });
  expect(tls).toBe(true);
  expect(await servedFingerprint(port)).toBe(fingerprint);
  // A look while the files are written, one after the other, finds another reason.
  const reasons = logged('waiting for the certificate').map(({ err }) => err?.message);
  expect(reasons.length).toBe(new Set(reasons).size);
});

test('a certificate that does not match its key yet is waited for, too, and each reason is logged once', async () => {
  const { line, logged } = await serve({ tlsDir: directory, checkMs: 5 });
  await line('waiting for the certificate');
  const [{ keyPem }, { certPem }] = [issued(), issued()];
  await writeFile(path.join(directory, 'tls.key'), keyPem);
  await writeFile(path.join(directory, 'tls.crt'), certPem);
  const reasons = () => logged('waiting for the certificate').map(({ err }) => err?.message);
  await vi.waitFor(() => expect(reasons()).toContainEqual(expect.stringContaining('mismatch')), {
    timeout: patience(5_000),
    interval: 5,
  });
  await delay(50);
  const fingerprint = await putCertificate();
  const { port } = await line('is served');
  expect(await servedFingerprint(port)).toBe(fingerprint);
  expect(reasons()).toEqual([...new Set(reasons())]);
});

test('while it waits for its certificate, it ends with the signal', async () => {
  const { line, end } = await serve({ tlsDir: directory, checkMs: 5 });
  await line('waiting for the certificate');
  await expect(end()).rejects.toThrow(/abort/);
});

test('a new certificate is used once it is complete, and each is logged once', async () => {
  await putCertificate();
  const { line, logged, end } = await serve({ tlsDir: directory, checkMs: 5 });
  const { port } = await line('is served');
  const inUse = await servedFingerprint(port);
  await writeFile(path.join(directory, 'tls.crt'), 'not a certificate');
  await line('keeps its certificate');
  expect(await servedFingerprint(port)).toBe(inUse);
  const fingerprint = await putCertificate();
  await line('uses a new certificate');
  expect(await servedFingerprint(port)).toBe(fingerprint);
  const another = await putCertificate();
  await vi.waitFor(async () => expect(await servedFingerprint(port)).toBe(another), {
    timeout: patience(5_000),
  });
  await end();
  expect(logged('uses a new certificate')).toHaveLength(2);
});

test('the certificate is looked at again after the pause, not before', async () => {
  await putCertificate();
  const { line, logged } = await serve({ tlsDir: directory, checkMs: 3_600_000 });
  const { port } = await line('is served');
  const inUse = await servedFingerprint(port);
  await putCertificate();
  await delay(50);
  expect(await servedFingerprint(port)).toBe(inUse);
  expect(logged('certificate')).toEqual([]);
});

test('nothing of a private key is logged, whether it can be used or not', async () => {
  const { keyPem } = await putIdentity();
  const { line, text, end } = await serve({ tlsDir: directory, checkMs: 5 });
  await line('is served');
  const canary = newCanary();
  const body = Buffer.from(`${canary} is no key`.repeat(10)).toString('base64');
  await writeFile(
    path.join(directory, 'tls.key'),
    `-----BEGIN PRIVATE KEY-----\n${body}\n-----END PRIVATE KEY-----\n`,
  );
  await line('keeps its certificate');
  const { keyPem: second } = await putIdentity();
  await line('uses a new certificate');
  await end();
  const needles = new Map([
    ...needlesOfKey('first', keyPem),
    ...needlesOfKey('second', second),
    ...needlesOf('unusable', Buffer.from(canary)),
  ]);
  expect(needles.size).toBeGreaterThan(12);
  expect(findNeedles([{ where: 'log', bytes: Buffer.from(text()) }], needles)).toEqual([]);
});

test('a page that was never built is an error before anything is served', async () => {
  vi.stubEnv('SHALE_PAGE_DIR', path.join(directory, 'none'));
  await expect(serve()).rejects.toMatchObject({ name: 'PageNotBuilt' });
});
