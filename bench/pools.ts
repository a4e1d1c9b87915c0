import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { DigestedPullspec } from '../api/references.ts';
import { layerContent } from '../builder/layer/layer-content.ts';
import { Slots } from '../builder/slots.ts';
import { type AppendInput, appendBuild } from '../builder/steps/append-build.ts';
import { defaultPolicySettings, effectivePolicies, policyDigest } from '../disruption/effective-policies.ts';
import { BaseTrees } from '../image/base/base-trees.ts';
import { writeLayer } from '../image/layer/write-layer.ts';
import { createRegistryClient } from '../image/registry/registry-client.ts';
import { parseNodeConfig } from '../machineconfig/parse-node-config.ts';
import { startDockerRegistry } from '../workshop/sandbox/docker-registry.ts';
import { bareAppend } from './images/bare-requests.ts';
import { configFiles, pushBase, renderedConfig } from './images/content.ts';
import { startCountingProxy } from './images/counting-proxy.ts';

/**
 * `node bench/pools.ts`: what images of 1, 10 and 100 pools on one base cost the builder, eight at a time as it makes
 * them, and what another disruption policy costs then: the same layers under other labels. Beside them the bare
 * requests of as many appends, eight at a time, too. Whoever reads it from a machine with other work looks at the CPU
 * time, in which the proxy that counts the requests has its part.
 */

const BASE_BYTES = 300_000_000;
const POOLS = [1, 10, 100];
const FILES = 100;
/** As many as the builder makes at once (`--parallel`). */
const PARALLEL = 8;

const signal = AbortSignal.timeout(600_000);
const dir = await mkdtemp(path.join(tmpdir(), 'shale-bench-'));
const registry = await startDockerRegistry({ dir });
const proxy = await startCountingProxy(registry.host);
const client = createRegistryClient({ plainHttp: new Set([registry.host, proxy.host]) });
const none = effectivePolicies(undefined, defaultPolicySettings);
const other = effectivePolicies(
  { files: [{ path: '/etc/example.d', actions: [{ type: 'None' }] }] },
  defaultPolicySettings,
);

const lastImages = new Map<number, DigestedPullspec>();

/** Of one builder: the base is read for the first image. */
const baseTrees = new BaseTrees();

function inputOf(pool: number, policies: typeof none, tag: string): AppendInput {
  const previousImage = lastImages.get(pool);
  return {
    previousImage,
    pool: `pool-${pool}`,
    rendered: renderedConfig(configFiles(FILES, pool), pool),
    baseImage: `${proxy.host}/os/stock:1`,
    pushSpec: `${proxy.host}/os/pool-${pool}:${tag}`,
    policies,
    policyDigest: policyDigest(policies),
    froms: [],
    architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
    version: '0',
    created: '1970-01-01T00:00:00Z',
    baseTrees,
  };
}

/** @param make one pool's image. @returns what all of them cost, and how they were made. */
async function makeAll(first: number, count: number, make: (pool: number) => Promise<string>) {
  const slots = new Slots(PARALLEL);
  proxy.take();
  const start = performance.now();
  const used = process.cpuUsage();
  const made = await Promise.all(
    Array.from({ length: count }, (_, index) => slots.run(signal, () => make(first + index))),
  );
  const seconds = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(used);
  return { seconds, cpuMs: (user + system) / 1000, ways: [...new Set(made)].join(), ...proxy.take() };
}

const build = (policies: typeof none, tag: string) => async (pool: number) => {
  const { image, way } = await appendBuild(client, inputOf(pool, policies, tag), signal);
  lastImages.set(pool, image);
  return way;
};

/** The layers are made before. */
async function bareRequests(first: number, count: number) {
  const layers = new Map<number, Uint8Array>();
  for (let pool = first; pool < first + count; pool += 1) {
    const rendered = renderedConfig(configFiles(FILES, pool), pool);
    const parsed = parseNodeConfig(rendered);
    const content = parsed.ok ? layerContent(parsed.config, rendered) : undefined;
    if (content?.ok !== true) throw new Error("the benchmark's config is no layer");
    layers.set(pool, (await writeLayer(content.entries)).bytes);
  }
  const { host } = proxy;
  const base = { repository: 'os/stock', tag: '1' };
  return makeAll(first, count, async (pool) => {
    const target = { repository: `os/bare-${pool}`, tag: '1' };
    await bareAppend({ host, base, target, layer: layers.get(pool) ?? Buffer.of() });
    return 'bare requests';
  });
}

try {
  await pushBase(client, `${registry.host}/os/stock:1`, BASE_BYTES, signal);
  const rows = [];
  let first = 0;
  for (const pools of POOLS) {
    const bare = await bareRequests(first, pools);
    const built = await makeAll(first, pools, build(none, 'one'));
    const relabelled = await makeAll(first, pools, build(other, 'two'));
    first += pools;
    for (const { ways, seconds, cpuMs, requests, sent, received } of [bare, built, relabelled]) {
      rows.push({
        pools,
        way: ways,
        seconds: seconds.toFixed(3),
        'ms a pool': ((1000 * seconds) / pools).toFixed(1),
        'CPU ms a pool': (cpuMs / pools).toFixed(1),
        requests,
        'requests a pool': (requests / pools).toFixed(1),
        'kB sent': (sent / 1000).toFixed(0),
        'kB received': (received / 1000).toFixed(0),
      });
    }
  }
  // biome-ignore lint/suspicious/noConsole: a benchmark prints its table
  console.table(rows);
} finally {
  await proxy.stop();
  await registry.stop();
  await rm(dir, { recursive: true, force: true });
}
