/** `shale ui` as a process: one address, one use, and its end. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { PageView } from '../../page/model/view.ts';
import { startApiServer } from '../../workshop/apiserver/start.ts';
import { root, shale } from '../cli/shale-process.ts';
import { type ClusterUnderTest, startClusterUnderTest } from '../e2e/cluster-under-test.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { buildPage } from './browser.ts';
import { aFleet } from './fleet.ts';
import { putFleet } from './put-fleet.ts';

const signal = deadline(300_000);
let cluster: ClusterUnderTest;
let built: Awaited<ReturnType<typeof buildPage>>;
let dir: string;

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'shale-ui-'));
  [cluster, built] = await Promise.all([startClusterUnderTest(signal), buildPage()]);
  await writeFile(path.join(dir, 'kubeconfig'), cluster.kubeconfig(), { mode: 0o600 });
  await putFleet(cluster, aFleet({ worker: 4 }, Date.now()), signal);
}, patience(60_000));
afterAll(async () => {
  await Promise.all([cluster.stop(), built.remove()]);
  await rm(dir, { recursive: true });
});

const env = (more: Record<string, string> = {}) => ({
  KUBECONFIG: path.join(dir, 'kubeconfig'),
  HOME: dir,
  SHALE_PAGE_DIR: built.directory,
  ...more,
});

test('serves the page to a browser that has the address, once for each address, until it is interrupted', async () => {
  const running = execa(path.join(root, 'bin/shale'), ['ui'], {
    env: env(),
    reject: false,
    cancelSignal: signal,
  });
  const first = await addressIn(running.stdout);
  expect(first.hostname).toBe('127.0.0.1');
  expect((await fetch(first, { signal })).status).toBe(200);
  expect((await fetch(new URL('/view', first), { signal })).status).toBe(401);

  const next = addressIn(running.stderr);
  const token = await tokenFor(first);
  const view = async () => {
    const response = await fetch(new URL('/view', first), {
      headers: { authorization: `Bearer ${token}` },
      signal,
    });
    return (await response.json()) as PageView;
  };
  expect(Object.keys((await view()).nodes)).toEqual(['worker-0', 'worker-1', 'worker-2', 'worker-3']);
  expect(await tokenFor(first)).toBeUndefined();
  expect(await tokenFor(await next)).toBeDefined();

  running.kill('SIGINT');
  const { exitCode } = await running;
  expect(exitCode).toBe(0);
});

/** @returns the first address that a stream has. */
async function addressIn(stream: Readable): Promise<URL> {
  let text = '';
  for await (const chunk of stream.iterator({ destroyOnReturn: false })) {
    text += String(chunk);
    const found = /http:\/\/\S+#\S+/.exec(text);
    if (found !== null) return new URL(found[0]);
  }
  throw new Error(`there is no address in ${JSON.stringify(text)}`);
}

async function tokenFor(address: URL): Promise<string | undefined> {
  const response = await fetch(new URL('/session', address), {
    method: 'POST',
    headers: { authorization: `Bearer ${address.hash.slice(1)}` },
    signal,
  });
  return response.ok ? ((await response.json()) as { readonly token: string }).token : undefined;
}

test('says in one line what it lacks, with exit code 69', async () => {
  const unbuilt = await shale(['ui'], { env: env({ SHALE_PAGE_DIR: path.join(dir, 'nothing') }) });
  expect(unbuilt).toMatchObject({ exitCode: 69 });
  expect(unbuilt.stderr).toMatch(/^shale: the page is not built: \S+ does not exist; run make page$/);

  const bare = await startApiServer();
  try {
    const kubeconfig = path.join(dir, 'bare');
    await writeFile(kubeconfig, bare.kubeconfig(), { mode: 0o600 });
    const uninstalled = await shale(['ui'], { env: env({ KUBECONFIG: kubeconfig }) });
    expect(uninstalled.exitCode).toBe(69);
    expect(uninstalled.stderr).toContain("install Shale's manifests first");
    expect(uninstalled.stderr.split('\n')).toHaveLength(1);
  } finally {
    await bare.stop();
  }
});
