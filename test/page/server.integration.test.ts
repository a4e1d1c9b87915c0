/** The page's server over HTTP: streams, slow readers, headers. */
import { connect, type Socket } from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { type Lease, Leases } from '../../api/kubernetes.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineOSBuilds } from '../../api/machine-os-build.ts';
import type { KubernetesObject } from '../../api/object.ts';
import { eventReader } from '../../page/app/connection/event-reader.ts';
import { applyPatch, type ViewPatch } from '../../page/model/patch.ts';
import type { PageView, PoolChange } from '../../page/model/view.ts';
import { type Access, ALLOWED, keyAccess } from '../../page/server/access.ts';
import { ChangeReader } from '../../page/server/change-reader.ts';
import { LiveView } from '../../page/server/live-view.ts';
import type { Asset } from '../../page/server/page-assets.ts';
import { createPageCaches } from '../../page/server/page-caches.ts';
import { type PageServer, startPageServer } from '../../page/server/page-server.ts';
import { tokenAccess } from '../../page/server/token-access.ts';
import { applyObjects } from '../../workshop/sandbox/manifests/apply.ts';
import { readKustomization } from '../../workshop/sandbox/manifests/kustomization.ts';
import { root } from '../cli/shale-process.ts';
import { type ClusterUnderTest, log, startClusterUnderTest } from '../e2e/cluster-under-test.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { createAccount } from './accounts.ts';
import { aFleet } from './fleet.ts';
import { FLEET_SECRET } from './fleet-change.ts';
import { aNodeOf, LEASE_NAMESPACE } from './fleet-node.ts';
import { putFleet, putObject } from './put-fleet.ts';

const signal = deadline(300_000);
const stop = new AbortController();
const now = Date.now();
const assets = new Map<string, Asset>([
  ['/', { body: Buffer.from('<!doctype html>'), type: 'text/html; charset=utf-8', immutable: false }],
]);
let cluster: ClusterUnderTest;
let live: LiveView;
let changes: ChangeReader;
let running: Promise<unknown>;

beforeAll(async () => {
  cluster = await startClusterUnderTest(signal);
  await putFleet(cluster, aFleet({ worker: 10, infra: 5 }, now), signal);
  const { caches, start } = createPageCaches(cluster.client, LEASE_NAMESPACE, log);
  live = new LiveView({ caches, log, inMaintenance: async () => new Set() });
  changes = new ChangeReader(cluster.client, caches);
  running = Promise.all([start(stop.signal), live.run(stop.signal)]);
}, patience(60_000));
afterAll(async () => {
  stop.abort();
  await running;
  await cluster.stop();
});

const everybody: Access = { authorize: async () => ALLOWED };

async function withServer(
  access: Access,
  use: (url: string, server: PageServer) => Promise<void>,
): Promise<void> {
  const server = await startPageServer({
    live,
    assets,
    access,
    changes,
    cluster: 'prod',
    port: 0,
    host: '127.0.0.1',
    log,
  });
  try {
    await use(`http://127.0.0.1:${server.port}`, server);
  } finally {
    await server.close();
  }
}

interface Follower {
  readonly view: PageView | undefined;
  readonly patches: number;
  /** Resolves when the view is as expected. */
  until(holds: (view: PageView) => boolean): Promise<PageView>;
}

/** Follows as a browser does. */
async function follow(url: string): Promise<Follower> {
  const response = await fetch(`${url}/events`, { signal });
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
  let view: PageView | undefined;
  let patches = 0;
  let changed = Promise.withResolvers<void>();
  const take = (name: string, value: unknown) => {
    if (name === 'about') return;
    if (name === 'snapshot') view = value as PageView;
    else if (view !== undefined) view = applyPatch(view, value as ViewPatch);
    patches += name === 'patch' ? 1 : 0;
    changed.resolve();
    changed = Promise.withResolvers();
  };
  const read = async () => {
    const eventsOf = eventReader();
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      for (const { name, data } of eventsOf(chunk)) take(name, JSON.parse(data));
    }
  };
  // The server's end breaks it off.
  read().catch(() => undefined);
  return {
    get view() {
      return view;
    },
    get patches() {
      return patches;
    },
    async until(holds) {
      for (;;) {
        signal.throwIfAborted();
        if (view !== undefined && holds(view)) return view;
        await changed.promise;
      }
    },
  };
}

const setPart = (name: string, part: Parameters<typeof aNodeOf>[2]) =>
  putObject(
    cluster.client,
    MachineConfigNodes,
    aNodeOf('worker', name, part, { now }).machineConfigNode,
    signal,
  );

describe('the stream', () => {
  test('begins with the whole view and continues with changes', async () => {
    await withServer(everybody, async (url) => {
      const follower = await follow(url);
      const first = await follower.until(({ nodes }) => Object.keys(nodes).length === 15);
      expect(first.nodes['worker-4']).toMatchObject({ state: 'rebooting', ready: false, cordoned: true });
      expect(first.pools['worker']).toMatchObject({
        state: 'NodesUpdating',
        nodes: { total: 10, updated: 4 },
        maxUnavailable: '3',
      });
      expect(first.leases['worker-4']).toMatchObject({ holder: 'shale-operator', ours: true });
      expect(first.policies['file /etc/chrony.conf']).toMatchObject({ source: 'admin' });
      expect(first.nodes['worker-8']?.obstacle).toBe('flagged for maintenance by ops: disk swap');

      await setPart('worker-9', 'applying');
      const second = await follower.until(
        ({ nodes }) => nodes['worker-9']?.what === 'restarts chronyd.service',
      );
      expect(second.nodes['worker-9']?.state).toBe('applying');
      expect(follower.patches).toBeGreaterThan(0);
      await setPart('worker-9', 'staging');
    });
  });

  test('appends the lines of a log', async () => {
    await withServer(everybody, async (url) => {
      const follower = await follow(url);
      await follower.until(({ logs }) => logs['worker-next']?.length === 2);
      const build = await cluster.client.get(MachineOSBuilds, 'worker-next', { signal });
      const logTail = [...(build.status?.logTail ?? []), 'STEP 3/4: RUN true'];
      await cluster.client.replaceStatus(
        MachineOSBuilds,
        { ...build, status: { ...build.status, logTail } },
        { signal },
      );
      const { logs } = await follower.until((view) => view.logs['worker-next']?.length === 3);
      expect(logs['worker-next']?.at(-1)).toBe('STEP 3/4: RUN true');
    });
  });

  test('removes rows of deleted objects', async () => {
    await withServer(everybody, async (url) => {
      const follower = await follow(url);
      await follower.until(({ leases }) => leases['infra-2'] !== undefined);
      await cluster.client.delete<Lease>(Leases, 'node-infra-2', { namespace: LEASE_NAMESPACE, signal });
      const { leases } = await follower.until((view) => view.leases['infra-2'] === undefined);
      expect(Object.keys(leases).length).toBeGreaterThan(0);
    });
  });

  test('queues nothing for a reader that does not read, and does not delay others', async () => {
    await withServer(everybody, async (url, server) => {
      const stuck = await stuckReader(server.port);
      const follower = await follow(url);
      for (const part of ['staged', 'applying', 'staged', 'applying'] as const) {
        await setPart('worker-9', part);
        await follower.until(({ nodes }) => nodes['worker-9']?.state === part);
      }
      stuck.destroy();
      await setPart('worker-9', 'staging');
      await follower.until(({ nodes }) => nodes['worker-9']?.state === 'staging');
    });
  });
});

/** A reader that asks and takes nothing. */
async function stuckReader(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.pause();
  await new Promise<void>((resolve) => socket.once('connect', () => resolve()));
  socket.write('GET /events HTTP/1.1\r\nHost: here\r\n\r\n');
  return socket;
}

describe('an answer', () => {
  test('lets the browser run the page alone', async () => {
    await withServer(everybody, async (url) => {
      for (const path of ['/', '/view', '/nowhere']) {
        const { headers } = await fetch(`${url}${path}`);
        const policy = headers.get('content-security-policy') ?? '';
        expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
        expect(policy).not.toContain('unsafe');
        expect(headers.get('x-content-type-options')).toBe('nosniff');
        expect(headers.get('access-control-allow-origin')).toBeNull();
      }
    });
  });

  test.each([
    ['POST', '/view', 405],
    ['DELETE', '/', 405],
    ['GET', '/../package.json', 404],
    ['GET', '/assets/nothing.js', 404],
    ['POST', '/session', 405],
  ])('to %s %s is %i', async (method, path, status) => {
    await withServer(everybody, async (url) => {
      expect((await fetch(`${url}${path}`, { method })).status).toBe(status);
    });
  });
});

describe('with keys', () => {
  test('each key works once, and its token keeps working', async () => {
    let used = 0;
    const access = keyAccess(() => {
      used += 1;
    });
    const key = access.newKey();
    await withServer(access, async (url) => {
      const session = (text: string) =>
        fetch(`${url}/session`, { method: 'POST', headers: { authorization: `Bearer ${text}` } });
      const view = (text: string) => fetch(`${url}/view`, { headers: { authorization: `Bearer ${text}` } });
      expect((await fetch(`${url}/view`)).status).toBe(401);
      expect((await view(key)).status).toBe(401);
      const { token } = (await (await session(key)).json()) as { token: string };
      expect((await session(key)).status).toBe(401);
      expect((await view(token)).status).toBe(200);
      expect((await fetch(`${url}/view?token=${token}`)).status).toBe(401);
      expect(used).toBe(1);
      expect((await session(access.newKey())).status).toBe(200);
      expect((await view(token)).status).toBe(200);
    });
  });
});

describe("with the cluster's tokens", () => {
  const access = () =>
    tokenAccess({
      client: cluster.client,
      leaseNamespace: LEASE_NAMESPACE,
      log,
      now: () => Date.now(),
    });

  test('lets a user read who may list every kind that is shown, and names the kinds that are missing', async () => {
    const viewer = await createAccount(cluster, 'viewer', signal);
    const stranger = await createAccount(cluster, 'stranger', signal);
    await applyObjects(cluster.client, await pageRoles(), { log, signal });
    await viewer.bind('shale-page-viewer');
    await withServer(access(), async (url) => {
      const view = (token: string) => fetch(`${url}/view`, { headers: { authorization: `Bearer ${token}` } });
      expect((await view(viewer.token)).status).toBe(200);
      const refused = await view(stranger.token);
      expect(refused.status).toBe(403);
      expect(await refused.text()).toContain(
        'system:serviceaccount:shale-system:stranger is not allowed to list machineconfigpools',
      );
      const unknown = await view('not-a-token');
      expect(unknown.status).toBe(401);
      expect(unknown.headers.get('www-authenticate')).toBe('Bearer realm="shale"');
      expect((await fetch(`${url}/events`)).status).toBe(401);
      expect((await fetch(url)).status).toBe(200);
    });
  });

  test('shows the lines of a change to those who may list MachineConfigs, and no secret', async () => {
    const viewer = await createAccount(cluster, 'change-viewer', signal);
    await applyObjects(cluster.client, await pageRoles(), { log, signal });
    await viewer.bind('shale-page-viewer');
    await withServer(access(), async (url) => {
      const change = (pool: string, token = viewer.token) =>
        fetch(`${url}/change?pool=${pool}`, { headers: { authorization: `Bearer ${token}` } });
      expect((await change('worker', 'not-a-token')).status).toBe(401);
      const refused = await change('worker');
      expect(refused.status).toBe(403);
      expect(await refused.text()).toContain('is not allowed to list machineconfigs, poolrevisions');
    });
    await viewer.bind('shale-page-change-viewer');
    // Another server: what was refused is remembered for a while.
    await withServer(access(), async (url) => {
      const change = (pool: string) =>
        fetch(`${url}/change?pool=${pool}`, { headers: { authorization: `Bearer ${viewer.token}` } });
      expect((await change('nowhere')).status).toBe(404);
      const text = await (await change('worker')).text();
      expect(text).not.toContain(FLEET_SECRET);
      const { changes, contents, ...names } = JSON.parse(text) as PoolChange;
      expect(contents?.kernels).toEqual({ from: ['6.12.9'], to: ['6.12.14'] });
      expect(names).toEqual({
        pool: 'worker',
        from: 'rendered-worker-1a2b3c4d',
        fromRevision: 12,
        to: 'rendered-worker-9f8e7d6c',
        revision: 13,
      });
      expect(changes.map(({ subject, machineConfigs }) => [subject, machineConfigs])).toEqual([
        ['/etc/chrony.conf', ['50-chrony-worker']],
        ['/etc/containers/auth.json', ['99-registry-worker']],
        ['/etc/sysctl.d/90-inotify.conf', ['90-sysctl-worker']],
      ]);
      expect(changes[0]?.lines).toContain('+server time.example.com iburst');
      expect(changes[1]).toMatchObject({ withheld: expect.stringContaining('mode') });
      expect(changes[1]?.lines).toBeUndefined();
    });
  });

  test('names the viewer and the cluster', async () => {
    const { token } = await cluster.access('viewer');
    await withServer(access(), async (url) => {
      const response = await fetch(`${url}/events`, { headers: { authorization: `Bearer ${token}` } });
      const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
      const eventsOf = eventReader();
      const [about] = eventsOf((await reader?.read())?.value ?? '');
      expect(about).toEqual({
        name: 'about',
        data: JSON.stringify({ cluster: 'prod', user: 'system:serviceaccount:shale-system:viewer' }),
      });
      await reader?.cancel();
    });
  });

  test('caches answers, and refuses access that it could not check', async () => {
    let time = 0;
    const create = vi.spyOn(cluster.client, 'create');
    onTestFinished(() => create.mockRestore());
    const asked = () => create.mock.calls.length;
    const parts = { leaseNamespace: LEASE_NAMESPACE, log, now: () => time };
    const access = tokenAccess({ ...parts, client: cluster.client });
    const { token } = await cluster.access('viewer');
    const both = await Promise.all([access.authorize(token), access.authorize(token)]);
    const allowed = { allowed: true, user: 'system:serviceaccount:shale-system:viewer' };
    expect(both).toEqual([allowed, allowed]);
    await access.authorize(token);
    const once = asked();
    expect(once).toBeGreaterThan(0);
    time += 61_000;
    await access.authorize(token);
    expect(asked()).toBe(2 * once);

    const deaf = tokenAccess({ ...parts, client: await cluster.clientOf('stranger') });
    expect(await deaf.authorize(token)).toMatchObject({ allowed: false, status: 503 });
  });
});

/** What manifests/components/live-page gives to who may see the page. */
async function pageRoles(): Promise<readonly KubernetesObject[]> {
  const objects = await readKustomization(path.join(root, 'manifests/overlays/complete'));
  return objects.filter(({ metadata }) => /^shale-page-.*viewer$/.test(metadata.name));
}
