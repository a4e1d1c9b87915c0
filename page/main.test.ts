import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Command, type CommanderError } from 'commander';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { MachineConfigPools } from '../api/machine-config-pool.ts';
import { WatchedCluster } from '../test/fixtures/fleet/watched-cluster.ts';
import { aPool } from '../test/fixtures/objects.ts';
import { patience } from '../test/fixtures/patience.ts';
import { freePort } from '../workshop/apiserver/control-plane/free-port.ts';
import { type PageFlags, runPage, withPageFlags } from './main.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'shale-page-main-'));
  await writeFile(path.join(directory, 'index.html'), '<title>the page</title>');
  vi.stubEnv('SHALE_PAGE_DIR', directory);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(directory, { recursive: true });
});

function flagsOf(...args: readonly string[]): PageFlags {
  const command = withPageFlags(new Command('page'))
    .exitOverride()
    .configureOutput({ writeErr: () => {} });
  command.parse(args, { from: 'user' });
  return command.opts<PageFlags>();
}

/** The page's process over objects in memory. */
async function start(cluster: WatchedCluster, ...args: readonly string[]) {
  const [port, health] = [await freePort(), await freePort()];
  const flags = flagsOf(
    ...['--port', String(port), '--metrics-port', String(health), '--log-level', 'silent'],
    ...args,
  );
  const stop = new AbortController();
  const client = cluster.watchingClient();
  const watched = vi.spyOn(client, 'watch');
  const ended = runPage(flags, stop.signal, async () => client);
  ended.catch(() => undefined);
  onTestFinished(() => {
    cluster.releaseLists();
    stop.abort();
  });
  const ask = async (at: number, where: string) => {
    const answer = await fetch(`http://127.0.0.1:${at}${where}`);
    return { status: answer.status, text: await answer.text() };
  };
  return {
    watched,
    ended,
    page: () => ask(port, '/'),
    health: (where: string) => ask(health, where),
    end: async () => {
      stop.abort();
      await ended;
    },
  };
}

const eventually = <T>(check: () => T | Promise<T>) =>
  vi.waitFor(check, { timeout: patience(5_000), interval: 5 });

test('it serves the page from watches of its own until the signal', async () => {
  const cluster = new WatchedCluster();
  cluster.put(MachineConfigPools, aPool('worker'));
  const { page, health, watched, end } = await start(cluster);
  expect((await eventually(page)).text).toContain('the page');
  await eventually(() => expect(watched.mock.calls.map(([kind]) => kind)).toContain(MachineConfigPools));
  await end();
  await expect(page()).rejects.toThrow();
  await expect(health('/healthz')).rejects.toThrow();
});

test('it lives from its start, and is ready once it knows the cluster', async () => {
  const cluster = new WatchedCluster();
  cluster.holdLists();
  const { health, page } = await start(cluster);
  await eventually(page);
  expect(await health('/healthz')).toMatchObject({ status: 200 });
  expect(await health('/readyz')).toEqual({ status: 503, text: 'reading the cluster\n' });
  cluster.releaseLists();
  await eventually(async () => expect(await health('/readyz')).toMatchObject({ status: 200 }));
  expect((await health('/metrics')).text).toContain('process_resident_memory_bytes');
});

test('while it waits for its certificate it lives, is not ready, and says what it waits for', async () => {
  const { health } = await start(new WatchedCluster(), '--tls-dir', directory);
  await eventually(async () => expect(await health('/healthz')).toMatchObject({ status: 200 }));
  const text = `waiting for tls.crt and tls.key in ${directory}\n`;
  expect(await health('/readyz')).toEqual({ status: 503, text });
});

test('without a port for them there is no health and no metrics', async () => {
  const { page, health } = await start(new WatchedCluster(), '--metrics-port', '0');
  await eventually(page);
  await expect(health('/healthz')).rejects.toThrow();
});

test('a port that is taken ends it, and its watches', async () => {
  const server = createServer();
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { ended, health } = await start(new WatchedCluster(), '--port', String(port));
  await expect(ended).rejects.toThrow(/EADDRINUSE/);
  await expect(health('/healthz')).rejects.toThrow();
});

test('a page that was never built is unavailable, before anything is asked of the cluster', async () => {
  vi.stubEnv('SHALE_PAGE_DIR', path.join(directory, 'none'));
  const { ended, watched } = await start(new WatchedCluster());
  await expect(ended).rejects.toMatchObject({
    name: 'PageNotBuilt',
    kind: 'unavailable',
    message: expect.stringContaining('the page is not built'),
  });
  expect(watched).not.toHaveBeenCalled();
});

test.each([
  ['--port', '0', 'from 1 to 65535'],
  ['--port', '65536', 'from 1 to 65535'],
  ['--metrics-port', '-1', 'from 0 to 65535'],
  ['--metrics-port', 'http', 'from 0 to 65535'],
  ['--log-level', 'verbose', 'Expected trace, debug, info, warn, error, fatal or silent'],
  ['--page-port', '8090', "unknown option '--page-port'"],
])('%s %s is refused', (flag, value, why) => {
  try {
    flagsOf(flag, value);
  } catch (error) {
    expect((error as CommanderError).message).toContain(why);
    return;
  }
  expect.fail('it is accepted');
});
