import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { layerContent } from '../builder/layer/layer-content.ts';
import type { BuildResult } from '../builder/status.ts';
import { type AppendInput, appendBuild } from '../builder/steps/append-build.ts';
import { defaultPolicySettings, effectivePolicies, policyDigest } from '../disruption/effective-policies.ts';
import { BaseTrees } from '../image/base/base-trees.ts';
import { writeLayer } from '../image/layer/write-layer.ts';
import { createRegistryClient } from '../image/registry/registry-client.ts';
import { parseNodeConfig } from '../machineconfig/parse-node-config.ts';
import { startDockerRegistry } from '../workshop/sandbox/docker-registry.ts';
import { bareAppend } from './images/bare-requests.ts';
import { configFiles, pushBase, renderedConfig, writeContext } from './images/content.ts';
import { type CountingProxy, startCountingProxy, type Traffic } from './images/counting-proxy.ts';
import { buildahPeer, dockerPeer, type Measured, measure, type Peer } from './images/peers.ts';

/**
 * `node bench/append.ts`: what a changed config costs until its image is in the registry, for Shale's append, `docker
 * build` + push and `buildah bud` + push, on one real registry behind one counting proxy. Needs root for Docker's
 * daemon.
 *
 * cold: nothing of the base image on the builder, nothing of the image's repository in the registry. warm: the second
 * build, of other contents. Shale is measured as a process that is started for each image (`shale build`), and as the
 * builder's own function in a process that runs already; cold also in turn with the bare requests, which is less by
 * chance on a machine with other work.
 */

const BASE_BYTES = 300_000_000;
const FILE_COUNTS = [10, 100, 1_000];
/** Of each warm figure the median of so many is shown; a cold one is measured once. */
const REPEATS = 5;
const ROOT = path.join(import.meta.dirname, '..');
const signal = AbortSignal.timeout(3_000_000);
const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';
const policies = effectivePolicies(undefined, defaultPolicySettings);

interface Row extends Measured, Traffic {
  readonly way: string;
  /** Of this process, where it does the work: the proxy's part is in it. */
  readonly cpuMs?: number;
  readonly files: number;
  readonly state: 'cold' | 'warm';
}

const dir = await mkdtemp(path.join(tmpdir(), 'shale-bench-'));
const registry = await startDockerRegistry({ dir });
const proxy = await startCountingProxy(registry.host);
const plainHttp = new Set([registry.host, proxy.host]);
const rows: Row[] = [];
/** What a builder knows that runs already; what it costs to know it is in bench/image-contents.ts. */
const baseTrees = new BaseTrees();
try {
  const direct = createRegistryClient({ plainHttp });
  const size = await pushBase(direct, `${registry.host}/os/stock:1`, BASE_BYTES, signal);
  process.stderr.write(`base image: ${(size / 1e6).toFixed(0)} MB in 4 layers\n`);
  const bareOnly = process.argv.includes('--bare-only');
  const peers = bareOnly ? [] : [shaleProcess(proxy), shaleFunction(proxy), ...(await otherPeers())];
  for (const peer of peers) {
    for (const files of FILE_COUNTS) await measurePeer(peer, files);
    await peer.stop();
  }
  for (const files of FILE_COUNTS) await measureBare(files);
  print();
} finally {
  await proxy.stop();
  await registry.stop();
  await rm(dir, { recursive: true, force: true, maxRetries: 10 });
}

/** @throws Error that says why one can't be measured: without its peers a figure says little. */
async function otherPeers(): Promise<Peer[]> {
  const found = [await dockerPeer(dir), await buildahPeer(dir)];
  const missing = found.filter((peer) => typeof peer === 'string');
  if (missing.length > 0) throw new Error(`${missing.join('; ')}; make bench-images installs both`);
  return found.filter((peer) => typeof peer !== 'string');
}

async function measurePeer(peer: Peer, files: number): Promise<void> {
  process.stderr.write(`${peer.name}, ${files} files\n`);
  const repository = `os/${peer.name.replace(/[^a-z]+/g, '-')}-${files}`;
  const warm: Row[] = [];
  for (let revision = 0; revision <= REPEATS; revision += 1) {
    const context = path.join(dir, 'context');
    await rm(context, { recursive: true, force: true });
    await mkdir(context);
    await writeContext(context, `${proxy.host}/os/stock:1`, configFiles(files, revision));
    const rendered = renderedConfig(configFiles(files, revision), revision);
    await writeFile(path.join(context, 'config.json'), JSON.stringify(rendered));
    proxy.take();
    const measured = await peer.build(context, `${proxy.host}/${repository}:${revision}`, revision === 0);
    const row = { way: peer.name, files, ...measured, ...proxy.take() };
    if (revision === 0) rows.push({ ...row, state: 'cold' });
    else warm.push({ ...row, state: 'warm' });
  }
  rows.push(median(warm));
}

async function measureBare(files: number): Promise<void> {
  const rendered = renderedConfig(configFiles(files, 0), 0);
  const parsed = parseNodeConfig(rendered);
  const content = parsed.ok ? layerContent(parsed.config, rendered) : undefined;
  if (content?.ok !== true) throw new Error("the benchmark's config is no layer");
  const layer = await writeLayer(content.entries);
  const base = { repository: 'os/stock', tag: '1' };
  const ways: Readonly<Record<string, (repository: string) => Promise<unknown>>> = {
    'bare requests': (repository) =>
      bareAppend({ host: proxy.host, base, target: { repository, tag: '1' }, layer: layer.bytes }),
    'shale append, in turn': (repository) =>
      appendBuild(
        createRegistryClient({ plainHttp }),
        { ...appendInput(rendered, { host: proxy.host, image: `${proxy.host}/${repository}:1` }), baseTrees },
        signal,
      ),
  };
  const samples = Object.keys(ways).map((): Row[] => []);
  // The first of each only warms up the process.
  for (let repeat = 0; repeat <= REPEATS; repeat += 1) {
    for (const [index, [way, append]] of Object.entries(ways).entries()) {
      proxy.take();
      const used = process.cpuUsage();
      const start = performance.now();
      await append(`os/turn-${index}-${files}-${repeat}`);
      const seconds = (performance.now() - start) / 1000;
      const { user, system } = process.cpuUsage(used);
      const row = { way, files, state: 'cold', seconds, peakMemory: 0, ...proxy.take() } as const;
      if (repeat > 0) samples[index]?.push({ ...row, cpuMs: (user + system) / 1000 });
    }
  }
  rows.push(...samples.map(median));
}

/** @returns what the builder is asked for. */
function appendInput(
  rendered: AppendInput['rendered'],
  { host, image }: { readonly host: string; readonly image: string },
): AppendInput {
  return {
    pool: 'worker',
    rendered,
    baseImage: `${host}/os/stock:1`,
    pushSpec: image,
    policies,
    policyDigest: policyDigest(policies),
    froms: [],
    architecture,
    version: '0',
    created: '1970-01-01T00:00:00Z',
  };
}

/** `shale build`, its start included. */
function shaleProcess({ host }: CountingProxy): Peer {
  return {
    name: 'shale build',
    build: (context, image) => {
      const config = path.join(context, 'config.json');
      const base = `${host}/os/stock:1`;
      const where = ['--base', base, '--push', image, '--plain-http', host, '--no-attest'];
      const args = ['build', '--pool', 'worker', '-f', config, ...where];
      return measure([process.pid], () => execa(path.join(ROOT, 'bin/shale'), args));
    },
    stop: async () => undefined,
  };
}

/**
 * What the builder calls, with a client of its own for each image: no token and no connection is left of the one
 * before.
 */
function shaleFunction({ host }: CountingProxy): Peer {
  let previous: BuildResult | undefined;
  let known = new BaseTrees();
  return {
    name: 'shale append (in the builder)',
    build: async (_context, image, cold) => {
      if (cold) [previous, known] = [undefined, new BaseTrees()];
      const revision = Number(image.slice(image.lastIndexOf(':') + 1));
      const files = Number(/-(\d+):/.exec(image)?.[1]);
      const rendered = renderedConfig(configFiles(files, revision), revision);
      const input = {
        ...appendInput(rendered, { host, image }),
        baseTrees: known,
        previousImage: previous?.image,
      };
      return measure([process.pid], async () => {
        previous = await appendBuild(createRegistryClient({ plainHttp }), input, signal);
      });
    },
    stop: async () => undefined,
  };
}

function median(samples: readonly Row[]): Row {
  const sorted = samples.toSorted((a, b) => a.seconds - b.seconds);
  const middle = sorted[Math.floor(sorted.length / 2)];
  if (middle === undefined) throw new Error('nothing was measured');
  return { ...middle, peakMemory: Math.max(...samples.map(({ peakMemory }) => peakMemory)) };
}

function print(): void {
  const megabytes = (bytes: number) => (bytes / 1e6).toFixed(2);
  // biome-ignore lint/suspicious/noConsole: a benchmark prints its table
  console.table(
    rows.map(({ way, files, state, seconds, cpuMs, requests, sent, received, peakMemory }) => ({
      way,
      files,
      state,
      seconds: seconds.toFixed(3),
      'CPU ms': cpuMs === undefined ? '' : cpuMs.toFixed(0),
      requests,
      'MB sent': megabytes(sent),
      'MB received': megabytes(received),
      'peak MB': peakMemory === 0 ? '' : (peakMemory / 1e6).toFixed(0),
    })),
  );
}
