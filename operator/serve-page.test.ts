import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { MachineConfigPools } from '../api/machine-config-pool.ts';
import { WatchedCluster } from '../test/fixtures/fleet/watched-cluster.ts';
import { aPool } from '../test/fixtures/objects.ts';
import { patience } from '../test/fixtures/patience.ts';
import { aFleet } from '../test/page/fleet.ts';
import { LEASE_NAMESPACE } from '../test/page/fleet-node.ts';
import { memoryCaches } from '../test/page/memory-caches.ts';
import { freePort } from '../workshop/apiserver/control-plane/free-port.ts';
import { type PageFlags, preparePage, servePageWhileWaiting } from './serve-page.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'shale-serve-page-'));
  await writeFile(path.join(directory, 'index.html'), '<title>the page</title>');
  vi.stubEnv('SHALE_PAGE_DIR', directory);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(directory, { recursive: true });
});

async function setUp(more: Partial<PageFlags> = {}) {
  const cluster = new WatchedCluster();
  const lines: { readonly msg: string; readonly err?: { readonly message: string } }[] = [];
  const log = pino({}, { write: (line) => void lines.push(JSON.parse(line)) });
  const flags = { pagePort: await freePort(), leaseNamespace: LEASE_NAMESPACE, ...more };
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  return {
    cluster,
    client: cluster.watchingClient(),
    lines,
    log,
    flags,
    stop,
    get: () => fetch(`http://127.0.0.1:${flags.pagePort}/`).then((answer) => answer.text()),
    notServed: () => lines.filter(({ msg }) => msg === 'the live page is not served'),
    prepare: () => preparePage(cluster.watchingClient(), memoryCaches(aFleet({}, Date.now())), flags, log),
  };
}

/** Takes the page's port. */
async function occupy(port: number): Promise<void> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
}

const eventually = <T>(check: () => T | Promise<T>) =>
  vi.waitFor(check, { timeout: patience(5_000), interval: 5 });

test('a prepared page is served until the signal, and its end is no failure', async () => {
  const { prepare, get, stop, notServed } = await setUp();
  const serve = (await prepare()) ?? expect.fail('there is no page');
  const ended = serve(stop.signal);
  expect(await eventually(get)).toContain('the page');
  stop.abort();
  await ended;
  await expect(get()).rejects.toThrow();
  expect(notServed()).toEqual([]);
});

test('a page that ends while it waits for its certificate is no failure', async () => {
  const { prepare, stop, lines, notServed } = await setUp({ pageTlsDir: directory });
  const serve = (await prepare()) ?? expect.fail('there is no page');
  const ended = serve(stop.signal);
  await eventually(() =>
    expect(lines.map(({ msg }) => msg)).toContainEqual(expect.stringMatching(/^waiting/)),
  );
  stop.abort();
  await ended;
  expect(notServed()).toEqual([]);
});

test('a page whose port is taken is logged, and nothing else fails', async () => {
  const { prepare, flags, stop, notServed } = await setUp();
  await occupy(flags.pagePort);
  await (await prepare())?.(stop.signal);
  expect(notServed()).toMatchObject([{ err: { message: expect.stringContaining('EADDRINUSE') } }]);
});

test('a page that was never built is logged, and there is none', async () => {
  vi.stubEnv('SHALE_PAGE_DIR', path.join(directory, 'none'));
  const { prepare, notServed } = await setUp();
  expect(await prepare()).toBeUndefined();
  expect(notServed()).toHaveLength(1);
});

test('without a port there is no page, and nothing is logged or watched', async () => {
  const { prepare, client, flags, log, lines, stop } = await setUp({ pagePort: 0 });
  expect(await prepare()).toBeUndefined();
  const list = vi.spyOn(client, 'list');
  await servePageWhileWaiting(client, flags, log, stop.signal);
  expect([lines, list.mock.calls]).toEqual([[], []]);
});

test('a process that waits to lead serves the page from watches of its own until the signal', async () => {
  const { cluster, client, flags, log, stop, get } = await setUp();
  cluster.put(MachineConfigPools, aPool('worker'));
  const watched = vi.spyOn(client, 'watch');
  let isOver = false;
  const ended = servePageWhileWaiting(client, flags, log, stop.signal).finally(() => {
    isOver = true;
  });
  expect(await eventually(get)).toContain('the page');
  await eventually(() => expect(watched.mock.calls.map(([kind]) => kind)).toContain(MachineConfigPools));
  expect(isOver).toBe(false);
  stop.abort();
  await ended;
  await expect(get()).rejects.toThrow();
});

test('a process that waits to lead watches nothing for a page that was never built', async () => {
  vi.stubEnv('SHALE_PAGE_DIR', path.join(directory, 'none'));
  const { client, flags, log, stop, notServed } = await setUp();
  const list = vi.spyOn(client, 'list');
  await servePageWhileWaiting(client, flags, log, stop.signal);
  expect(list).not.toHaveBeenCalled();
  expect(notServed()).toHaveLength(1);
});
