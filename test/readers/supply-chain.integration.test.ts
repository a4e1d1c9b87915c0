/**
 * What Shale says of its images, read by tools that know nothing of it. They are used where they are installed: Debian
 * 13 has cosign and oras, its unstable release spdx-tools.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { expect, onTestFinished, test } from 'vitest';
import { Seal } from '../../builder/attest/seal-image.ts';
import { appendBuild } from '../../builder/steps/append-build.ts';
import {
  defaultPolicySettings,
  effectivePolicies,
  policyDigest,
} from '../../disruption/effective-policies.ts';
import { createRegistryClient } from '../../image/registry/registry-client.ts';
import { startDockerRegistry } from '../../workshop/sandbox/docker-registry.ts';
import { aConfigWithFile } from '../fixtures/objects.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { pushBaseImage } from '../fixtures/registry/base-image.ts';
import { newSigningKey } from '../fixtures/registry/registry-with-image.ts';

const signal = deadline(300_000);
const rendered = aConfigWithFile;

/** An image as the builder makes it, signed and with its provenance, in a real registry. */
async function sealedImage() {
  const dir = await mkdtemp(path.join(tmpdir(), 'readers-supply-'));
  const registry = await startDockerRegistry({ dir });
  onTestFinished(async () => {
    await registry.stop();
    await rm(dir, { recursive: true });
  });
  const { host } = registry;
  const client = createRegistryClient({ plainHttp: new Set([host]) });
  await pushBaseImage(client, `${host}/os/stock:1`, signal);
  const policies = effectivePolicies({}, defaultPolicySettings);
  const key = newSigningKey();
  const { image } = await appendBuild(
    client,
    {
      pool: 'worker',
      rendered,
      baseImage: `${host}/os/stock:1`,
      pushSpec: `${host}/os/worker:build-1`,
      policies,
      policyDigest: policyDigest(policies),
      froms: [],
      architecture: 'amd64',
      version: '0.1.0',
      created: '1970-01-01T00:00:00Z',
      source: { url: 'https://git.example.com/nodes', revision: 'a'.repeat(40) },
      seal: new Seal({ attest: true, key }),
    },
    signal,
  );
  const files = { ours: path.join(dir, 'ours.pub'), other: path.join(dir, 'other.pub') };
  await writeFile(files.ours, key.publicKey);
  await writeFile(files.other, newSigningKey().publicKey);
  return { dir, image, keys: files };
}

/** Runs a tool with a home of its own; skips the test where it is not installed. */
async function tool(skip: (why: string) => void, dir: string, name: string, ...args: readonly string[]) {
  const result = await execa(name, args, { reject: false, timeout: patience(60_000), env: { HOME: dir } });
  if (result.code === 'ENOENT') skip(`${name} is not installed`);
  return result;
}

const COSIGN = ['--allow-http-registry', '--allow-insecure-registry', '--insecure-ignore-tlog=true'];

test('cosign verifies the signature with its key, and not with another', async ({ skip }) => {
  const { dir, image, keys } = await sealedImage();
  const verify = (key: string) => tool(skip, dir, 'cosign', 'verify', ...COSIGN, '--key', key, image);
  const { exitCode, stdout } = await verify(keys.ours);
  expect(exitCode).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject([
    { critical: { image: { 'docker-manifest-digest': image.slice(image.indexOf('@') + 1) } } },
  ]);
  expect((await verify(keys.other)).stderr).toContain('no matching signatures');
});

test('cosign verifies the provenance with its key, and not with another', async ({ skip }) => {
  const { dir, image, keys } = await sealedImage();
  const type = ['--type', 'slsaprovenance1'];
  const verify = (key: string) =>
    tool(skip, dir, 'cosign', 'verify-attestation', ...COSIGN, ...type, '--key', key, image);
  const { exitCode, stdout } = await verify(keys.ours);
  expect(exitCode).toBe(0);
  const { payload } = JSON.parse(stdout) as { payload: string };
  expect(JSON.parse(Buffer.from(payload, 'base64').toString())).toMatchObject({
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: { buildDefinition: { externalParameters: { pool: 'worker' } } },
  });
  expect((await verify(keys.other)).stderr).toContain('no matching attestations');
});

test('oras discovers what is attached, and spdx-tools takes the document', async ({ skip }) => {
  const { dir, image } = await sealedImage();
  const oras = (...args: string[]) => tool(skip, dir, 'oras', ...args);
  const discovered = await oras('discover', '--plain-http', '--format', 'json', image);
  // Version 1.2 calls the list manifests.
  const listed = JSON.parse(discovered.stdout) as Partial<
    Record<'referrers' | 'manifests', { artifactType: string; reference: string }[]>
  >;
  const referrers = listed.referrers ?? listed.manifests ?? [];
  expect(referrers.map(({ artifactType }) => artifactType)).toEqual([
    'application/vnd.in-toto+json',
    'application/spdx+json',
  ]);
  const manifest = await oras('manifest', 'fetch', '--plain-http', referrers[1]?.reference ?? '');
  const { layers } = JSON.parse(manifest.stdout) as { layers: { digest: string }[] };
  const repository = image.slice(0, image.indexOf('@'));
  const document = path.join(dir, 'image.spdx.json');
  await oras('blob', 'fetch', '--plain-http', '--output', document, `${repository}@${layers[0]?.digest}`);
  const validated = await tool(skip, dir, 'pyspdxtools', '-i', document, '--version', 'SPDX-2.3');
  expect(validated).toMatchObject({ exitCode: 0, stderr: '' });
});
