/**
 * `node bench/commands.ts`: what whole commands cost as processes, from the bundle that the image runs: `shale build`
 * of 100 files, to a registry on this machine, and `shale status` of 5,000 nodes, from a server that has the answers
 * ready. Beside them Node itself with an empty program, and one that reads the same lists and does nothing with them.
 * Whoever reads it from a machine with other work looks at the CPU time.
 */
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { DEFAULT_LEASE_NAMESPACE } from '../api/names.ts';
import { bundlePrograms } from '../container/bundle.ts';
import { createRegistryClient } from '../image/registry/registry-client.ts';
import { leaseNameOf } from '../rollout/node-leases.ts';
import { condition, machineConfigNode, node, pool } from '../test/fixtures/observed-cluster.ts';
import { kubeconfigText } from '../workshop/apiserver/control-plane/control-plane.ts';
import { startDockerRegistry } from '../workshop/sandbox/docker-registry.ts';
import { createAuthority } from '../x509/certificate.ts';
import { configFiles, pushBase, renderedConfig } from './images/content.ts';
import { costOf, medianCost, type ProcessCost } from './process-cost.ts';

const ROOT = path.join(import.meta.dirname, '..');
const BUNDLES = path.join(ROOT, 'node_modules/.cache/shale-commands');
const MAIN = path.join(BUNDLES, 'main.mjs');
/** Of Node, as in bin/shale. */
const FLAGS = ['--min-semi-space-size=16'];
const RUNS = 7;
const FILES = 100;
const NODES = 5_000;
/** What kubectl and Shale ask for at once. */
const PAGE = 500;
const UPDATING_OF = 10;
const BASE_BYTES = 1_000_000;
/** Reads the lists of argv as Shale does, at the same time and in pages, and parses them. */
const BARE_LISTS = `import { readFileSync } from 'node:fs';
import https from 'node:https';
import { json } from 'node:stream/consumers';
const [server, caFile, ...kinds] = process.argv.slice(1);
const agent = new https.Agent({ keepAlive: true, ca: readFileSync(caFile) });
const get = (url) => new Promise((resolve, reject) => https.get(url, { agent }, resolve).on('error', reject));
await Promise.all(kinds.map(async (kind) => {
  for (let next = ''; next !== undefined; ) {
    const page = await json(await get(server + kind + '?limit=${PAGE}&continue=' + next));
    next = page.metadata.continue;
  }
}));
agent.destroy();`;

const dir = await mkdtemp(path.join(tmpdir(), 'shale-commands-'));
const cache = path.join(dir, 'cache');
await bundlePrograms({ main: 'cli/main.ts' }, BUNDLES);
const lists = listsOf(NODES);
const authority = createAuthority('bench', new Date());
const { certPem, keyPem } = authority.issueServer({ dns: [], ipv4: ['127.0.0.1'] });
const server = createServer({ cert: certPem, key: keyPem }, answerLists(lists)).listen(0, '127.0.0.1');
await once(server, 'listening');
const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
const registry = await startDockerRegistry({ dir });
try {
  const kubeconfig = path.join(dir, 'kubeconfig');
  await writeFile(kubeconfig, kubeconfigText({ url, caPem: authority.caPem, token: 'none' }));
  const caFile = path.join(dir, 'ca.pem');
  await writeFile(caFile, authority.caPem);
  const config = path.join(dir, 'config.json');
  await writeFile(config, JSON.stringify(renderedConfig(configFiles(FILES, 1), 1)));
  const client = createRegistryClient({ plainHttp: new Set([registry.host]) });
  const base = `${registry.host}/os/stock:1`;
  await pushBase(client, base, BASE_BYTES, AbortSignal.timeout(60_000));
  const where = ['--base', base, '--push', `${registry.host}/os/worker:1`, '--plain-http', registry.host];
  const commands: readonly (readonly [string, readonly string[]])[] = [
    ['node, an empty program', ['--eval', '']],
    [
      `node, the lists of ${NODES} nodes`,
      ['--input-type=module', '--eval', BARE_LISTS, url, caFile, ...lists.keys()],
    ],
    [`shale status, ${NODES} nodes`, [...FLAGS, MAIN, 'status', '--kubeconfig', kubeconfig]],
    [`shale build, ${FILES} files`, [...FLAGS, MAIN, 'build', '--pool', 'worker', '-f', config, ...where]],
  ];
  const costs = commands.map(() => [] as ProcessCost[]);
  // In turn, so that a machine that slows down slows all; the first run only fills the compile cache.
  for (let run = 0; run <= RUNS; run++) {
    for (const [index, [, args]] of commands.entries()) {
      const cost = await costOf(args, cache);
      if (run > 0) costs[index]?.push(cost);
    }
  }
  // biome-ignore lint/suspicious/noConsole: a benchmark prints its table
  console.table(commands.map(([name], index) => ({ name, ...medianCost(costs[index] ?? []) })));
} finally {
  await registry.stop();
  server.close();
  server.closeAllConnections();
  await rm(dir, { recursive: true, force: true, maxRetries: 10 });
}

/** @returns the items of each list that has any, by path. */
function listsOf(count: number): ReadonlyMap<string, readonly object[]> {
  const names = Array.from({ length: count }, (_, index) => `node-${index}`);
  const machineConfiguration = '/apis/machineconfiguration.openshift.io/v1';
  return new Map<string, readonly object[]>([
    [`${machineConfiguration}/machineconfigpools`, [pool([])]],
    [`/api/v1/nodes`, names.map((name) => node(name))],
    [
      `${machineConfiguration}/machineconfignodes`,
      names.map((name, index) =>
        machineConfigNode(name, {
          conditions: [
            index % UPDATING_OF === 0
              ? condition('UpdatePrepared', 'True', 'waits for permission')
              : condition('Updated', 'True', ''),
          ],
        }),
      ),
    ],
    [
      `/apis/coordination.k8s.io/v1/namespaces/${DEFAULT_LEASE_NAMESPACE}/leases`,
      names.map((name) => ({
        metadata: { name: leaseNameOf(name), namespace: DEFAULT_LEASE_NAMESPACE },
        spec: { holderIdentity: '', leaseDurationSeconds: 600 },
      })),
    ],
  ]);
}

/** Every other list is empty. */
function answerLists(items: ReadonlyMap<string, readonly object[]>): RequestListener {
  const pages = new Map<string, string>();
  return ({ url = '' }, response) => {
    const { pathname, searchParams } = new URL(url, 'http://here');
    const from = Number(searchParams.get('continue') ?? 0);
    const key = `${pathname} ${from}`;
    const all = items.get(pathname) ?? [];
    const more = from + PAGE < all.length ? { continue: String(from + PAGE) } : {};
    const page = pages.get(key) ?? JSON.stringify({ metadata: more, items: all.slice(from, from + PAGE) });
    pages.set(key, page);
    response.setHeader('Content-Type', 'application/json').end(page);
  };
}
