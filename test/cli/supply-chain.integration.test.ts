/** `shale build` with a key: what a registry has afterwards, read by Shale's own verification. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { expect, onTestFinished, test } from 'vitest';
import { createRegistryClient } from '../../image/registry/registry-client.ts';
import { startDockerRegistry } from '../../workshop/sandbox/docker-registry.ts';
import { deadline } from '../fixtures/patience.ts';
import { pushBaseImage } from '../fixtures/registry/base-image.ts';
import { shale } from './shale-process.ts';

const signal = deadline(300_000);

/** A registry with a base image, and two key pairs made by openssl as docs/supply-chain.md says. */
async function setUp() {
  const dir = await mkdtemp(path.join(tmpdir(), 'cli-supply-'));
  const registry = await startDockerRegistry({ dir });
  onTestFinished(async () => {
    await registry.stop();
    await rm(dir, { recursive: true });
  });
  const client = createRegistryClient({ plainHttp: new Set([registry.host]) });
  await pushBaseImage(client, `${registry.host}/os/stock:1`, signal);
  const keyPair = async (name: string) => {
    const files = { private: path.join(dir, `${name}.key`), public: path.join(dir, `${name}.pub`) };
    const make = [
      'genpkey',
      '-algorithm',
      'EC',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-out',
      files.private,
    ];
    await execa('openssl', make);
    await execa('openssl', ['pkey', '-in', files.private, '-pubout', '-out', files.public]);
    return files;
  };
  const { host } = registry;
  const build = (...args: string[]) =>
    shale([
      ...['build', '--pool', 'worker', '-f', 'examples', '--plain-http', host],
      ...['--base', `${host}/os/stock:1`, '--push', `${host}/os/worker:1`, ...args],
    ]);
  const inspect = (image: string, ...args: string[]) =>
    shale(['image', 'inspect', image, '--plain-http', host, '-o', 'json', ...args]);
  return { dir, build, inspect, ours: await keyPair('ours'), other: await keyPair('other') };
}

test('an image that is built with a key is signed by it, and by no other', async () => {
  const { build, inspect, ours, other } = await setUp();
  const built = await build('--sign-by', ours.private, '--source-revision', 'v1');
  expect(built.stderr).toContain(', signed');
  const inspected = await inspect(built.stdout, '--key', ours.public);
  expect(inspected.exitCode).toBe(0);
  expect(JSON.parse(inspected.stdout)).toMatchObject({
    signatures: 1,
    signedByKey: true,
    referrers: [
      { artifactType: 'application/vnd.in-toto+json' },
      { artifactType: 'application/spdx+json' },
      { artifactType: 'application/vnd.shale.image-contents.v1+json' },
    ],
  });
  const refused = await inspect(built.stdout, '--key', other.public);
  expect(refused.exitCode).toBe(1);
  expect(refused.stderr).toMatch(/is not signed by the key in .*other\.pub/);
});

test('without a key an image has provenance, and without provenance nothing', async () => {
  const { build, inspect } = await setUp();
  const plain = JSON.parse((await inspect((await build('--no-attest')).stdout)).stdout) as object;
  expect(plain).toMatchObject({ referrers: [], signatures: 0 });
  const attested = JSON.parse((await inspect((await build()).stdout)).stdout) as object;
  expect(attested).toMatchObject({ referrers: [{}, {}, {}], signatures: 0 });
});

test('a key that can not sign is refused before anything is pushed, without a word of it', async () => {
  const { dir, build, ours } = await setUp();
  const file = path.join(dir, 'broken.key');
  const secret = (await readFile(ours.private, 'utf8')).split('\n')[1] ?? '';
  await writeFile(file, `-----BEGIN PRIVATE KEY-----\n${secret}\n-----END PRIVATE KEY-----\n`);
  const { exitCode, stdout, stderr } = await build('--sign-by', file);
  expect(exitCode).toBe(2);
  expect(stdout).toBe('');
  expect(stderr).toContain('broken.key: is not a private key in PEM');
  expect(stderr).not.toContain(secret);
});
