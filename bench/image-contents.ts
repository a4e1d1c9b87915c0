import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { describeImage } from '../image/append.ts';
import { pushBaseRecord, readBaseRecord } from '../image/base/base-record.ts';
import { chainIds, readBaseTree } from '../image/base/read-base.ts';
import { contentsOf } from '../image/contents/image-contents.ts';
import { parseReference } from '../image/reference.ts';
import { createRegistryClient } from '../image/registry/registry-client.ts';
import { startDockerRegistry } from '../workshop/sandbox/docker-registry.ts';
import { startCountingProxy, type Traffic } from './images/counting-proxy.ts';
import { pushFilledBase } from './images/filled-base.ts';
import { type Measured, measure } from './images/peers.ts';

/**
 * `node bench/image-contents.ts`: what it costs to know what is in a base image, on one real registry behind one counting
 * proxy. Needs curl and, with `--roots`, mmdebstrap and a mirror of Debian.
 *
 * first: `shale image diff` of the image with itself, which reads all of its layers once. later: its record is read, as
 * `shale plan --packages` does for an image that a build has recorded. Beside them `tar -tz` of the same layers, which
 * unpacks as many bytes and verifies none.
 */

const SIZE = { bytes: 1_000_000_000, files: 100_000 };
const SUITES = ['bookworm', 'trixie'];
const signal = AbortSignal.timeout(3_000_000);
const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';
const SHALE = path.join(import.meta.dirname, '../bin/shale');

interface Row extends Measured, Traffic {
  readonly image: string;
  readonly way: string;
}

const dir = await mkdtemp(path.join(tmpdir(), 'shale-bench-'));
const registry = await startDockerRegistry({ dir });
const proxy = await startCountingProxy(registry.host);
const client = createRegistryClient({ plainHttp: new Set([registry.host, proxy.host]) });
const rows: Row[] = [];
try {
  await pushFilledBase(client, `${registry.host}/os/filled:1`, SIZE, signal);
  await measureImage('1 GB', 'os/filled');
  if (process.argv.includes('--roots')) {
    for (const suite of SUITES) {
      await pushRoot(suite);
      await measureImage(suite, `os/${suite}`);
    }
    const [from, to] = SUITES.map((suite) => `${proxy.host}/os/${suite}:1`);
    rows.push(await record(SUITES.join(' -> '), 'shale image diff', () => diff(from ?? '', to ?? '')));
  }
  print();
} finally {
  await proxy.stop();
  await registry.stop();
  await rm(dir, { recursive: true, force: true, maxRetries: 10 });
}

/** A root of Debian with systemd, pushed by skopeo as an image of one layer. */
async function pushRoot(suite: string): Promise<void> {
  const tar = path.join(dir, `${suite}.tar`);
  await execa('mmdebstrap', ['--variant=minbase', '--include=systemd,openssh-server', suite, tar]);
  const to = `docker://${registry.host}/os/${suite}:1`;
  await execa('skopeo', ['copy', '--dest-tls-verify=false', `tarball:${tar}`, to]);
  await rm(tar);
}

async function record(image: string, way: string, run: () => Promise<unknown>): Promise<Row> {
  process.stderr.write(`${image}: ${way}\n`);
  proxy.take();
  const measured = await measure([process.pid], run);
  return { image, way, ...measured, ...proxy.take() };
}

async function measureImage(image: string, repository: string): Promise<void> {
  const name = `${proxy.host}/${repository}:1`;
  const reference = parseReference(name);
  const description = await describeImage(client, reference, architecture, signal);
  const blobs = description.manifest.layers.map(
    ({ digest }) => `http://${proxy.host}/v2/${repository}/blobs/${digest}`,
  );
  const list = 'for url do curl -sSf "$url" | tar -tz > /dev/null || exit 1; done';
  rows.push(await record(image, 'curl | tar -tz', () => execa('sh', ['-c', list, 'sh', ...blobs])));
  rows.push(await record(image, 'shale, first', () => diff(name, name)));
  const tree = await readBaseTree(client, { reference, description }, undefined, signal);
  const chainId = chainIds(description.config.rootfs.diff_ids).at(-1);
  if (chainId === undefined) throw new Error(`${name} has no layers`);
  const digest = await pushBaseRecord(client, reference, { chainId, tree }, signal);
  rows.push(
    await record(image, 'shale, later', async () => {
      const known = await readBaseRecord(client, { ...reference, digest }, signal);
      return known && contentsOf(known, architecture);
    }),
  );
}

async function diff(from: string, to: string): Promise<void> {
  const args = ['image', 'diff', from, to, '--plain-http', proxy.host, '-o', 'json'];
  const { exitCode, stdout, stderr } = await execa(SHALE, args, { reject: false });
  // An image without packages is compared all the same, and the exit code says that they are not known.
  if (exitCode === undefined || exitCode > 2) throw new Error(stderr);
  process.stderr.write(`${(JSON.parse(stdout) as { readonly summary: string }).summary}\n`);
}

function print(): void {
  // biome-ignore lint/suspicious/noConsole: a benchmark prints its table
  console.table(
    rows.map(({ image, way, seconds, requests, received, peakMemory }) => ({
      image,
      way,
      seconds: seconds.toFixed(3),
      requests,
      'MB received': (received / 1e6).toFixed(2),
      'peak MB': (peakMemory / 1e6).toFixed(0),
    })),
  );
}
