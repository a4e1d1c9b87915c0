import { expect, onTestFinished, test, vi } from 'vitest';
import {
  defaultPolicySettings,
  effectivePolicies,
  policyDigest,
} from '../../disruption/effective-policies.ts';
import { describeImage } from '../../image/append.ts';
import { parseReference } from '../../image/reference.ts';
import { listReferrers } from '../../image/referrers.ts';
import { createRegistryClient, type RegistryClient } from '../../image/registry/registry-client.ts';
import { isImageSignedBy } from '../../image/signature/sign-image.ts';
import { statementsSignedBy } from '../../image/signature/sign-statement.ts';
import { aConfigWithFile } from '../../test/fixtures/objects.ts';
import { deadline } from '../../test/fixtures/patience.ts';
import { pushBaseImage } from '../../test/fixtures/registry/base-image.ts';
import { MemoryRegistry } from '../../test/fixtures/registry/memory-registry.ts';
import { startRegistryProxy } from '../../test/fixtures/registry/registry-proxy.ts';
import { newSigningKey } from '../../test/fixtures/registry/registry-with-image.ts';
import { appendBuild } from '../steps/append-build.ts';
import { CONTENTS_TYPE } from './contents-document.ts';
import { Seal } from './seal-image.ts';

const signal = deadline(300_000);
const policies = effectivePolicies({}, defaultPolicySettings);
const rendered = aConfigWithFile;

async function setUp() {
  const registry = await MemoryRegistry.start();
  const client = createRegistryClient({ plainHttp: new Set([registry.host]) });
  await pushBaseImage(client, `${registry.host}/os/stock:1`, signal);
  return { client, host: registry.host, input: inputFor(registry.host) };
}

function inputFor(host: string) {
  return {
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
    source: { url: 'https://git.example.com/nodes', revision: '0123456789'.repeat(4) },
  };
}

/** The content of an artifact, as a reader gets at it from the image. */
async function contentOf(client: RegistryClient, image: string, artifactType: string): Promise<unknown> {
  const at = parseReference(image);
  if (at.digest === undefined) throw new Error(`${image} has no digest`);
  const referrers = await listReferrers(client, at, at.digest, signal);
  const found = referrers.filter((referrer) => referrer.artifactType === artifactType);
  expect(found).toHaveLength(1);
  const { bytes } = await client.getManifest({ ...at, digest: found[0]?.digest ?? at.digest }, signal);
  const { layers } = JSON.parse(Buffer.from(bytes).toString()) as {
    layers: Parameters<RegistryClient['readBlob']>[1][];
  };
  const chunks: Uint8Array[] = [];
  for (const layer of layers)
    for await (const chunk of client.readBlob(at, layer, signal)) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString());
}

test('from an image one finds what it was made of, and its files', async () => {
  const { client, input, host } = await setUp();
  const { image, baseImage, contents, warnings } = await appendBuild(
    client,
    { ...input, seal: new Seal({ attest: true }) },
    signal,
  );
  expect(warnings).toEqual([]);
  const digest = image.slice(image.indexOf('@sha256:') + 8);
  const base = baseImage.slice(baseImage.indexOf('@sha256:') + 8);
  expect(await contentOf(client, image, 'application/vnd.in-toto+json')).toMatchObject({
    subject: [{ name: `${host}/os/worker`, digest: { sha256: digest } }],
    predicate: {
      buildDefinition: {
        externalParameters: { pool: 'worker', renderedConfig: 'rendered-worker-1' },
        resolvedDependencies: expect.arrayContaining([
          expect.objectContaining({ name: 'base image', digest: { sha256: base } }),
          expect.objectContaining({ name: 'source', digest: { gitCommit: '0123456789'.repeat(4) } }),
        ]),
      },
      runDetails: { byproducts: [{ name: 'contents of the image', uri: contents?.record }] },
    },
  });
  expect(await contentOf(client, image, CONTENTS_TYPE)).toMatchObject({ databases: [], users: {} });
  const { files } = (await contentOf(client, image, 'application/spdx+json')) as {
    files: { fileName: string }[];
  };
  expect(files.map(({ fileName }) => fileName)).toEqual([
    './etc/motd',
    './usr/share/shale/machine-config.json',
  ]);
  const made = await describeImage(client, parseReference(image), 'amd64', signal);
  expect(made.config.config?.Labels).toMatchObject({
    'org.opencontainers.image.revision': '0123456789'.repeat(4),
    'org.opencontainers.image.base.name': `${host}/os/stock:1`,
  });
});

test('a build that is done again attaches and signs nothing twice', async () => {
  const { client, input } = await setUp();
  const key = newSigningKey();
  const sealed = { ...input, seal: new Seal({ attest: true, key }) };
  const first = await appendBuild(client, sealed, signal);
  const at = parseReference(first.image);
  if (at.digest === undefined) throw new Error('an image by digest is needed');
  const before = await listReferrers(client, at, at.digest, signal);
  const again = await appendBuild(client, sealed, signal);
  expect(again.image).toBe(first.image);
  expect(await listReferrers(client, at, at.digest, signal)).toEqual(before);
  const given = { digest: at.digest, publicKey: key.publicKey };
  expect(await isImageSignedBy(client, at, given, signal)).toBe(true);
  const [statement, ...more] = await statementsSignedBy(client, at, given, signal);
  expect(more).toEqual([]);
  expect(JSON.parse(Buffer.from(statement ?? '').toString())).toEqual(
    await contentOf(client, first.image, 'application/vnd.in-toto+json'),
  );
});

test('without being asked for, nothing is attached', async () => {
  const { client, input } = await setUp();
  const { image } = await appendBuild(client, input, signal);
  const at = parseReference(image);
  expect(at.digest && (await listReferrers(client, at, at.digest, signal))).toEqual([]);
});

async function refusing(host: string, refused: (line: string) => boolean): Promise<string> {
  const registry = await startRegistryProxy(host);
  registry.decide((line) => (line.startsWith('PUT ') && refused(line) ? 'refused' : 'none'));
  onTestFinished(() => registry.stop());
  return registry.host;
}

test('a registry that refuses provenance is a warning, and the image is there', async () => {
  const { host } = await setUp();
  const proxy = await refusing(host, (url) => url.includes('/manifests/sha256:'));
  const client = createRegistryClient({ plainHttp: new Set([proxy]) });
  const result = await appendBuild(client, { ...inputFor(proxy), seal: new Seal({ attest: true }) }, signal);
  expect(result.warnings).toEqual([expect.stringMatching(/provenance is not attached: .*manifest invalid/)]);
  expect((await client.getManifest(parseReference(result.image), signal)).digest).toBe(
    parseReference(result.image).digest,
  );
});

test('a registry that takes too long over provenance is a warning', async () => {
  const { client, input } = await setUp();
  const timeout = AbortSignal.timeout.bind(AbortSignal);
  // Thirty seconds are over at once; every other limit stays.
  const spy = vi
    .spyOn(AbortSignal, 'timeout')
    .mockImplementation((ms) => (ms === 30_000 ? AbortSignal.abort(new Error('too late')) : timeout(ms)));
  onTestFinished(() => spy.mockRestore());
  const result = await appendBuild(client, { ...input, seal: new Seal({ attest: true }) }, signal);
  expect(result.warnings).toEqual([`${result.image}: provenance was not attached within 30 s`]);
});

test('an error that is none of the registry fails the build', async () => {
  const { client, input } = await setUp();
  vi.spyOn(client, 'putReferrer').mockRejectedValue(new RangeError('a defect'));
  await expect(
    appendBuild(client, { ...input, seal: new Seal({ attest: true }) }, signal),
  ).rejects.toMatchObject({
    message: expect.stringContaining('a defect'),
  });
});

test('a registry that refuses the signature fails the build', async () => {
  const { host } = await setUp();
  const proxy = await refusing(host, (url) => url.endsWith('.sig'));
  const client = createRegistryClient({ plainHttp: new Set([proxy]) });
  const input = { ...inputFor(proxy), seal: new Seal({ attest: false, key: newSigningKey() }) };
  await expect(appendBuild(client, input, signal)).rejects.toMatchObject({
    reason: 'RegistryRefused',
    temporary: false,
  });
});

test('what is attached costs a handful of requests, and less when it is there', async () => {
  const { host, input } = await setUp();
  let requests = 0;
  const onRequest = () => {
    requests += 1;
  };
  const client = createRegistryClient({ plainHttp: new Set([host]), onRequest });
  const countOf = async (seal?: Seal) => {
    requests = 0;
    await appendBuild(client, { ...input, seal }, signal);
    return requests;
  };
  const key = newSigningKey();
  // One more for the layer of the base, which is read once.
  expect(await countOf()).toBeLessThanOrEqual(9);
  const plain = await countOf();
  expect((await countOf(new Seal({ attest: true }))) - plain).toBeLessThanOrEqual(15);
  expect((await countOf(new Seal({ attest: true }))) - plain).toBeLessThanOrEqual(9);
  expect((await countOf(new Seal({ attest: false, key }))) - plain).toBeLessThanOrEqual(6);
  expect((await countOf(new Seal({ attest: false, key }))) - plain).toBeLessThanOrEqual(2);
});
