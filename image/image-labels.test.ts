import { expect, test } from 'vitest';
import { deadline } from '../test/fixtures/patience.ts';
import { pushBaseImage } from '../test/fixtures/registry/base-image.ts';
import { MemoryRegistry } from '../test/fixtures/registry/memory-registry.ts';
import { digestOf } from './digest.ts';
import { readImageLabels } from './image-labels.ts';
import { parseReference, type Reference } from './reference.ts';
import { createRegistryClient } from './registry/registry-client.ts';

const signal = deadline(60_000);
const OCI_MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const OCI_INDEX = 'application/vnd.oci.image.index.v1+json';

async function setUp() {
  const registry = await MemoryRegistry.start();
  const client = createRegistryClient({ plainHttp: new Set([registry.host]) });
  const at = parseReference(`${registry.host}/os/worker:1`);
  const image = async (config?: object) => {
    const bytes = Buffer.from(
      JSON.stringify({
        architecture: 'amd64',
        os: 'linux',
        rootfs: { type: 'layers', diff_ids: [] },
        ...(config === undefined ? {} : { config }),
      }),
    );
    const { digest } = await client.putBlob(at, bytes, signal);
    const described = { mediaType: 'application/vnd.oci.image.config.v1+json', digest, size: bytes.length };
    return push(at, OCI_MANIFEST, { schemaVersion: 2, config: described, layers: [] });
  };
  const push = async ({ registry: host, repository }: Reference, mediaType: string, content: object) => {
    const bytes = Buffer.from(JSON.stringify(content));
    const digest = digestOf(bytes);
    await client.putManifest({ registry: host, repository, digest }, { mediaType, bytes }, signal);
    return { mediaType, digest, size: bytes.length };
  };
  const index = (...manifests: readonly object[]) => push(at, OCI_INDEX, { schemaVersion: 2, manifests });
  const labels = ({ digest }: Awaited<ReturnType<typeof push>>) =>
    readImageLabels(client, { registry: at.registry, repository: at.repository, digest }, signal);
  return { registry, client, at, image, index, labels };
}

test('an image has its labels', async () => {
  const { client, registry, at } = await setUp();
  await pushBaseImage(client, `${registry.host}/os/worker:1`, signal);
  expect(await readImageLabels(client, at, signal)).toEqual([{ kept: 'yes' }]);
});

test.each([
  ['no configuration', undefined],
  ['no labels', {}],
  ['null in their place', { Labels: null }],
])('an image with %s has none', async (_what, config) => {
  const { image, labels } = await setUp();
  expect(await labels(await image(config))).toEqual([{}]);
});

test('an index has those of each image in it, in its order', async () => {
  const { image, index, labels } = await setUp();
  const images = [await image({ Labels: { a: '1' } }), await image({ Labels: { a: '2' } })];
  expect(await labels(await index(...images))).toEqual([{ a: '1' }, { a: '2' }]);
});

test('an index in an index is refused', async () => {
  const { image, index, labels } = await setUp();
  await expect(labels(await index(await index(await image())))).rejects.toThrow('another index in it');
});

test('an index of more images than there are architectures is refused before any of them is read', async () => {
  const { registry, image, index, labels } = await setUp();
  const one = await image();
  const most = await index(...Array.from({ length: 16 }, () => one));
  expect(await labels(most)).toHaveLength(16);
  const tooMany = await index(...Array.from({ length: 17 }, () => one));
  const requests = await registry.requestsOf(() =>
    expect(labels(tooMany)).rejects.toThrow('the index has 17 images, more than the limit of 16'),
  );
  expect(requests).toHaveLength(1);
});
