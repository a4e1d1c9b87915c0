import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import type { BuildResult } from '../builder/status.ts';
import { type AppendInput, appendBuild } from '../builder/steps/append-build.ts';
import { defaultPolicySettings, effectivePolicies, policyDigest } from '../disruption/effective-policies.ts';
import { BaseTrees } from '../image/base/base-trees.ts';
import { createRegistryClient } from '../image/registry/registry-client.ts';
import { startDockerRegistry } from '../workshop/sandbox/docker-registry.ts';
import { configFiles, renderedConfig, writeContext } from './images/content.ts';
import { startCountingProxy, type Traffic } from './images/counting-proxy.ts';
import { pushFilledBase } from './images/filled-base.ts';
import { buildahPeer, dockerPeer, type Measured, measure } from './images/peers.ts';

/**
 * `node bench/base-record.ts`: what it costs that an image knows its base, on one real registry behind one counting
 * proxy. Needs root for Docker's daemon; `--no-peers` leaves out Docker and Buildah.
 *
 * first: the base's layers are read. new process: a builder that was restarted reads the record. later: the builder
 * knows the base. Beside them `skopeo copy` of the base to a directory, which moves the same bytes, and the other
 * tools' first build.
 */

const BASES = [
  { name: '300 MB', bytes: 300_000_000, files: 30_000 },
  { name: '1 GB', bytes: 1_000_000_000, files: 100_000 },
];
const CONFIG_FILES = 10;
/** Of later builds the median of so many is shown. */
const REPEATS = 5;
const signal = AbortSignal.timeout(3_000_000);
const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';
const policies = effectivePolicies(undefined, defaultPolicySettings);

interface Row extends Measured, Traffic {
  readonly base: string;
  readonly way: string;
  /** Of this process, where it does the work. */
  readonly cpuSeconds?: number;
}

const dir = await mkdtemp(path.join(tmpdir(), 'shale-bench-'));
const registry = await startDockerRegistry({ dir });
const proxy = await startCountingProxy(registry.host);
const plainHttp = new Set([registry.host, proxy.host]);
const rows: Row[] = [];
try {
  for (const base of BASES) {
    const repository = `os/base-${base.files}`;
    const pushed = await pushFilledBase(
      createRegistryClient({ plainHttp }),
      `${registry.host}/${repository}:1`,
      base,
      signal,
    );
    process.stderr.write(
      `base of ${base.name}: ${(pushed / 1e6).toFixed(0)} MB compressed, ${base.files} files\n`,
    );
    await measureSkopeo(base.name, repository);
    await measureShale(base.name, repository);
    if (!process.argv.includes('--no-peers')) await measurePeers(base.name, repository);
  }
  print();
} finally {
  await proxy.stop();
  await registry.stop();
  await rm(dir, { recursive: true, force: true, maxRetries: 10 });
}

async function record(base: string, way: string, run: () => Promise<Measured>): Promise<Row> {
  process.stderr.write(`${way}\n`);
  proxy.take();
  const used = process.cpuUsage();
  const measured = await run();
  const { user, system } = process.cpuUsage(used);
  const cpuSeconds = (user + system) / 1e6;
  return { base, way, ...measured, ...proxy.take(), ...(way.startsWith('shale') ? { cpuSeconds } : {}) };
}

async function measureSkopeo(base: string, repository: string): Promise<void> {
  const to = path.join(dir, 'skopeo');
  const copy = ['copy', '--src-tls-verify=false', `docker://${proxy.host}/${repository}:1`, `dir:${to}`];
  rows.push(await record(base, 'skopeo copy', () => measure([process.pid], () => execa('skopeo', copy))));
  await rm(to, { recursive: true });
}

async function measureShale(base: string, repository: string): Promise<void> {
  let last: BuildResult | undefined;
  let number = 0;
  const build = (baseTrees: BaseTrees) => {
    number += 1;
    const input: AppendInput = {
      pool: 'worker',
      rendered: renderedConfig(configFiles(CONFIG_FILES, number), number),
      baseImage: `${proxy.host}/${repository}:1`,
      pushSpec: `${proxy.host}/${repository}-worker:${number}`,
      policies,
      policyDigest: policyDigest(policies),
      froms: [],
      architecture,
      version: '0',
      created: '1970-01-01T00:00:00Z',
      baseTrees,
      baseRecords: last?.baseRecord === undefined ? [] : [last.baseRecord],
      previousImage: last?.image,
    };
    return measure([process.pid], async () => {
      last = await appendBuild(createRegistryClient({ plainHttp }), input, signal);
    });
  };
  const trees = new BaseTrees();
  rows.push(await record(base, 'shale, first', () => build(trees)));
  rows.push(await record(base, 'shale, new process', () => build(new BaseTrees())));
  const later: Row[] = [];
  for (let repeat = 0; repeat < REPEATS; repeat += 1)
    later.push(await record(base, 'shale, later', () => build(trees)));
  const median = later.toSorted((a, b) => a.seconds - b.seconds)[Math.floor(REPEATS / 2)];
  if (median !== undefined) rows.push(median);
}

async function measurePeers(base: string, repository: string): Promise<void> {
  for (const peer of [await dockerPeer(dir), await buildahPeer(dir)]) {
    if (typeof peer === 'string') throw new Error(`${peer}; make bench-images installs both`);
    const context = path.join(dir, 'context');
    await rm(context, { recursive: true, force: true });
    await mkdir(context);
    await writeContext(context, `${proxy.host}/${repository}:1`, configFiles(CONFIG_FILES, 0));
    const image = `${proxy.host}/${repository}-${peer.name.replace(/[^a-z]+/g, '-')}:1`;
    rows.push(await record(base, `${peer.name}, first`, () => peer.build(context, image, true)));
    await peer.stop();
  }
}

function print(): void {
  // biome-ignore lint/suspicious/noConsole: a benchmark prints its table
  console.table(
    rows.map(({ base, way, seconds, cpuSeconds, requests, sent, received, peakMemory }) => ({
      base,
      way,
      seconds: seconds.toFixed(3),
      'CPU s': cpuSeconds?.toFixed(2) ?? '',
      requests,
      'MB sent': (sent / 1e6).toFixed(2),
      'MB received': (received / 1e6).toFixed(2),
      'peak MB': (peakMemory / 1e6).toFixed(0),
    })),
  );
}
