import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { present } from '../api/present.ts';
import type { DigestedPullspec } from '../api/references.ts';
import { Slots } from '../builder/slots.ts';
import { type AppendInput, appendBuild } from '../builder/steps/append-build.ts';
import { defaultPolicySettings, effectivePolicies, policyDigest } from '../disruption/effective-policies.ts';
import { createRegistryClient } from '../image/registry/registry-client.ts';
import { startDockerRegistry } from '../workshop/sandbox/docker-registry.ts';
import { configFiles, pushBase, renderedConfig } from './images/content.ts';
import { startCountingProxy } from './images/counting-proxy.ts';

/**
 * `node bench/pools.ts`: what images of 1, 10 and 100 pools on one base cost the builder, eight at a time as it makes
 * them, and what another disruption policy costs then: the same layers under other labels.
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

function inputOf(pool: number, policies: typeof none, tag: string): AppendInput {
  const previousImage = lastImages.get(pool);
  return {
    ...present({ previousImage }),
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
  };
}

async function buildAll(first: number, count: number, policies: typeof none, tag: string) {
  const slots = new Slots(PARALLEL);
  proxy.take();
  const start = performance.now();
  const builds = Array.from({ length: count }, (_, index) =>
    slots.hold(signal, async () => {
      const result = await appendBuild(client, inputOf(first + index, policies, tag), signal);
      lastImages.set(first + index, result.image);
      return result;
    }),
  );
  const ways = new Set((await Promise.all(builds)).map(({ way }) => way));
  return { seconds: (performance.now() - start) / 1000, ways: [...ways].join(), ...proxy.take() };
}

try {
  await pushBase(client, `${registry.host}/os/stock:1`, BASE_BYTES, signal);
  const rows = [];
  let first = 0;
  for (const pools of POOLS) {
    const built = await buildAll(first, pools, none, 'one');
    const relabelled = await buildAll(first, pools, other, 'two');
    first += pools;
    for (const { ways, seconds, requests, sent, received } of [built, relabelled]) {
      rows.push({
        pools,
        way: ways,
        seconds: seconds.toFixed(3),
        'ms a pool': ((1000 * seconds) / pools).toFixed(1),
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
