/** The page as a process: TLS, tokens, and renewal of its certificate. */
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { json } from 'node:stream/consumers';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { PageView, PoolChange } from '../../page/model/view.ts';
import { livePage } from '../../page/server/live-page.ts';
import { createPageCaches } from '../../page/server/page-caches.ts';
import { eventually } from '../../workshop/apiserver/conformance/api.ts';
import { freePort } from '../../workshop/apiserver/control-plane/free-port.ts';
import { applyObjects } from '../../workshop/sandbox/manifests/apply.ts';
import { readKustomization } from '../../workshop/sandbox/manifests/kustomization.ts';
import { createAuthority } from '../../x509/certificate.ts';
import { root } from '../cli/shale-process.ts';
import { type ClusterUnderTest, log, startClusterUnderTest } from '../e2e/cluster-under-test.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { createAccount } from './accounts.ts';
import { buildPage } from './browser.ts';
import { aFleet } from './fleet.ts';
import { LEASE_NAMESPACE } from './fleet-node.ts';
import { putFleet } from './put-fleet.ts';

const signal = deadline(300_000);
const stop = new AbortController();
let cluster: ClusterUnderTest;
let built: Awaited<ReturnType<typeof buildPage>>;

beforeAll(async () => {
  [cluster, built] = await Promise.all([startClusterUnderTest(signal), buildPage()]);
  const objects = await readKustomization(path.join(root, 'manifests/overlays/complete'));
  const ofPage = objects.filter(({ kind, metadata }) => kind !== 'Deployment' && /page/.test(metadata.name));
  await applyObjects(cluster.client, ofPage, { log, signal });
  await putFleet(cluster, aFleet({ worker: 4 }, Date.now()), signal);
}, patience(60_000));
afterAll(async () => {
  stop.abort();
  await Promise.all([cluster.stop(), built.remove()]);
});

test("a token that may only read serves the page, to who has the viewer's role", async () => {
  const viewer = await createAccount(cluster, 'viewer', signal);
  await viewer.bind('shale-page-viewer');
  const stranger = await createAccount(cluster, 'stranger', signal);

  process.env['SHALE_PAGE_DIR'] = built.directory;
  const client = await cluster.clientOf('shale-page');
  const { caches, start } = createPageCaches(client, LEASE_NAMESPACE, log);
  const port = await freePort();
  const { serve } = await livePage(client, caches, { port, leaseNamespace: LEASE_NAMESPACE }, log);
  const running = [start(stop.signal), serve(stop.signal)];
  await Promise.all(Object.values(caches).map((cache) => cache.synced()));

  const url = `http://127.0.0.1:${port}`;
  const view = (token: string) =>
    fetch(`${url}/view`, { headers: { authorization: `Bearer ${token}` }, signal });
  expect(await (await fetch(url)).text()).toContain('<div id="page">');
  expect((await view(stranger.token)).status).toBe(403);
  const seen = (await (await view(viewer.token)).json()) as PageView;
  expect(Object.keys(seen.nodes)).toEqual(['worker-0', 'worker-1', 'worker-2', 'worker-3']);
  expect(seen.remarks).toEqual({});

  const change = (token: string) =>
    fetch(`${url}/change?pool=worker`, { headers: { authorization: `Bearer ${token}` }, signal });
  expect((await change(viewer.token)).status).toBe(403);
  const auditor = await createAccount(cluster, 'auditor', signal);
  await auditor.bind('shale-page-viewer');
  await auditor.bind('shale-page-change-viewer');
  expect((await (await change(auditor.token)).json()) as PoolChange).toMatchObject({ revision: 13 });

  stop.abort();
  await Promise.all(running);
  await expect(fetch(url)).rejects.toThrow();
});

test('the certificate may come later, and be renewed', { timeout: patience(90_000) }, async () => {
  const dir = await mkdtemp(path.join(tmpdir(), 'shale-page-certificate-'));
  const ending = new AbortController();
  const put = async () => {
    const authority = createAuthority('page', new Date());
    const { certPem, keyPem } = authority.issueServer({ dns: [], ipv4: ['127.0.0.1'] });
    await writeFile(path.join(dir, 'tls.key'), keyPem, { mode: 0o600 });
    await writeFile(path.join(dir, 'tls.crt'), certPem);
    return authority.caPem;
  };
  process.env['SHALE_PAGE_DIR'] = built.directory;
  const client = await cluster.clientOf('shale-page');
  const { caches, start } = createPageCaches(client, LEASE_NAMESPACE, log);
  const port = await freePort();
  const options = { port, tlsDir: dir, checkMs: 20, leaseNamespace: LEASE_NAMESPACE };
  const { serve } = await livePage(client, caches, options, log);
  const running = Promise.all([start(ending.signal), serve(ending.signal)]);
  const trusts = (ca: string) =>
    new Promise<boolean>((resolve) => {
      const sent = request({ host: '127.0.0.1', port, path: '/', ca, agent: false }, (response) => {
        response.resume();
        resolve(true);
      });
      sent.once('error', () => resolve(false));
      sent.end();
    });
  try {
    const first = await put();
    expect(
      await eventually(
        () => trusts(first),
        (is) => is,
      ),
    ).toBe(true);
    const second = await put();
    expect(
      await eventually(
        () => trusts(second),
        (is) => is,
      ),
    ).toBe(true);
    expect(await trusts(first)).toBe(false);
  } finally {
    ending.abort();
    await running;
    await rm(dir, { recursive: true });
  }
});

/** Not where `kubectl port-forward` ends, and on this machine all the same. */
const OTHER_ADDRESS = '127.0.0.2';

test('with a certificate its process serves it by TLS on every address, and is ready then', {
  timeout: patience(90_000),
}, async () => {
  const dir = await mkdtemp(path.join(tmpdir(), 'shale-page-process-'));
  const authority = createAuthority('page', new Date());
  const { certPem, keyPem } = authority.issueServer({ dns: [], ipv4: [OTHER_ADDRESS] });
  const { url, caPem, token } = await cluster.access('shale-page');
  const files = { 'tls.crt': certPem, 'tls.key': keyPem, 'account/token': token, 'account/ca.crt': caPem };
  await mkdir(path.join(dir, 'account'));
  for (const [name, text] of Object.entries(files)) {
    await writeFile(path.join(dir, name), text, { mode: 0o600 });
  }
  const { hostname, port: apiPort } = new URL(url);
  const port = await freePort();
  const health = await freePort();
  const flags = ['--port', String(port), '--tls-dir', dir, '--metrics-port', String(health)];
  const page = execa(path.join(root, 'bin/shale'), ['page', ...flags], {
    env: {
      KUBERNETES_SERVICE_HOST: hostname,
      KUBERNETES_SERVICE_PORT: apiPort,
      SHALE_SERVICE_ACCOUNT_DIR: path.join(dir, 'account'),
      SHALE_PAGE_DIR: built.directory,
    },
    reject: false,
    timeout: patience(80_000),
  });
  try {
    const reader = await createAccount(cluster, 'reader', signal);
    await reader.bind('shale-page-viewer');
    const ask = async (bearer: string): Promise<IncomingMessage> => {
      const headers = { authorization: `Bearer ${bearer}` };
      const sent = request({ host: OTHER_ADDRESS, port, path: '/view', ca: authority.caPem, headers });
      sent.end();
      const [response] = (await once(sent, 'response')) as [IncomingMessage];
      return response;
    };
    const first = await eventually(
      () => ask(reader.token).catch(() => undefined),
      (response) => response?.statusCode === 200,
    );
    if (first === undefined) throw new Error('no answer');
    expect(Object.keys(((await json(first)) as PageView).pools)).toEqual(['worker']);
    const refused = await ask('x');
    refused.resume();
    expect(refused.statusCode).toBe(401);
    expect((await fetch(`http://127.0.0.1:${health}/readyz`, { signal })).status).toBe(200);
  } finally {
    page.kill('SIGTERM');
    expect((await page).exitCode).toBe(0);
    await rm(dir, { recursive: true });
  }
});
