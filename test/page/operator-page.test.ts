import { createServer } from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { livePage } from '../../cli/operator/live-page.ts';
import type { PageView } from '../../page/model/view.ts';
import { allCaches, createCaches } from '../../rollout/caches.ts';
import { defaultRolloutOptions } from '../../rollout/options.ts';
import { applyObjects } from '../../sandbox/manifests/apply.ts';
import { readKustomization } from '../../sandbox/manifests/kustomization.ts';
import { root } from '../cli/shale-process.ts';
import { type ClusterUnderTest, NAMESPACE, quiet, startClusterUnderTest } from '../e2e/cluster-under-test.ts';
import { createAccount } from './accounts.ts';
import { buildPage } from './browser.ts';
import { aFleet, LEASE_NAMESPACE, putFleet } from './fleet.ts';

const signal = AbortSignal.timeout(120_000);
const stop = new AbortController();
let cluster: ClusterUnderTest;
let built: Awaited<ReturnType<typeof buildPage>>;

beforeAll(async () => {
  [cluster, built] = await Promise.all([startClusterUnderTest(signal), buildPage()]);
  await putFleet(cluster.client, aFleet({ worker: 4 }, Date.now()), signal);
}, 60_000);
afterAll(async () => {
  stop.abort();
  await Promise.all([cluster.stop(), built.remove()]);
});

test("the operator serves the page with its own rights and caches, to who has the viewer's role", async () => {
  const component = path.join(root, 'manifests/overlays/complete');
  const roles = (await readKustomization(component)).filter(({ metadata }) => /page/.test(metadata.name));
  expect(roles).toHaveLength(3);
  await applyObjects(cluster.client, roles, { log: quiet, signal });
  const viewer = await createAccount(cluster, 'viewer', signal);
  await viewer.bind('shale-page-viewer');
  const stranger = await createAccount(cluster, 'stranger', signal);

  process.env['SHALE_PAGE_DIR'] = built.directory;
  const client = await cluster.clientOf('shale-operator');
  const caches = createCaches(client, { ...defaultRolloutOptions, namespace: NAMESPACE }, quiet);
  const { pools, machineConfigNodes, nodes, machineOSBuilds, leases, machineConfigurations } = caches;
  const shown = { pools, machineConfigNodes, nodes, machineOSBuilds, leases, machineConfigurations };
  const port = await freePort();
  const serve = await livePage(client, shown, { port, leaseNamespace: LEASE_NAMESPACE }, quiet);
  const running = [...allCaches(caches).map((cache) => cache.start(stop.signal)), serve(stop.signal)];
  await Promise.all(allCaches(caches).map((cache) => cache.synced()));

  const url = `http://127.0.0.1:${port}`;
  const view = (token: string) =>
    fetch(`${url}/view`, { headers: { authorization: `Bearer ${token}` }, signal });
  expect(await (await fetch(url)).text()).toContain('<div id="page">');
  expect((await view(stranger.token)).status).toBe(403);
  const seen = (await (await view(viewer.token)).json()) as PageView;
  expect(Object.keys(seen.nodes)).toEqual(['worker-0', 'worker-1', 'worker-2', 'worker-3']);
  expect(seen.remarks).toEqual({});

  stop.abort();
  await Promise.all(running);
  await expect(fetch(url)).rejects.toThrow();
});

/** One that was free a moment ago: the operator's flag takes 0 for none. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((listening) => server.once('listening', listening));
  const address = server.address();
  await new Promise((closed) => server.close(closed));
  return typeof address === 'object' && address !== null ? address.port : 0;
}
