import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import { deadline } from '../test/fixtures/patience.ts';
import { pushBaseImage } from '../test/fixtures/registry/base-image.ts';
import { MemoryRegistry } from '../test/fixtures/registry/memory-registry.ts';
import { describeImage } from './append.ts';
import { digestOf } from './digest.ts';
import { writeLayer } from './layer/write-layer.ts';
import type { Manifest } from './manifest.ts';
import { pushAppended, pushOnBase } from './push-image.ts';
import { parseReference, type Reference } from './reference.ts';
import { createRegistryClient, type RegistryClient } from './registry/registry-client.ts';

const signal = deadline(60_000);
const options = { labels: { own: 'label' }, created: '1970-01-01T00:00:00Z', comment: 'test' };
const layer = await writeLayer([
  { type: 'file', path: '/etc/motd', mode: 0o644, uid: 0, gid: 0, content: Buffer.from('hello') },
]);

async function setUp(target = 'os/worker') {
  const registry = await MemoryRegistry.start();
  const client = createRegistryClient({ plainHttp: new Set([registry.host]) });
  const base = parseReference(`${registry.host}/os/stock:1`);
  await pushBaseImage(client, `${registry.host}/os/stock:1`, signal);
  const description = await describeImage(client, base, 'amd64', signal);
  const [baseLayer] = description.manifest.layers;
  if (baseLayer === undefined) throw new Error('the base image has no layer');
  const at = parseReference(`${registry.host}/${target}:build-1`);
  return { registry, client, image: { base, description, target: at, layer, options }, baseLayer };
}

const otherLayer = await writeLayer([
  { type: 'file', path: '/etc/issue', mode: 0o644, uid: 0, gid: 0, content: Buffer.from('other') },
]);

describe("the base's layers", () => {
  test('are mounted from another repository of the registry, and no byte of them is read', async () => {
    const { registry, client, image, baseLayer } = await setUp();
    let pushed: Awaited<ReturnType<typeof pushAppended>> | undefined;
    const requests = await registry.requestsOf(async () => {
      pushed = await pushAppended(client, image, signal);
    });
    expect(pushed).toMatchObject({
      layerSent: true,
      bytes: { sent: layer.bytes.length, mounted: baseLayer.size },
    });
    expect(requests.filter((line) => line.startsWith('GET'))).toEqual([]);
    expect(requests.at(-1)).toBe('PUT os/worker/manifests/build-1');
    const made = await describeImage(client, image.target, 'amd64', signal);
    expect(made.config.rootfs.diff_ids).toEqual([...image.description.config.rootfs.diff_ids, layer.diffId]);
    expect(made.config.config?.Labels).toEqual({ kept: 'yes', own: 'label' });
  });

  test('are copied where the registry mounts nothing, unless they are there already', async () => {
    const { registry, client, image, baseLayer } = await setUp();
    registry.mounts = false;
    const { bytes } = await pushAppended(client, image, signal);
    expect(bytes).toEqual({ sent: layer.bytes.length + baseLayer.size, mounted: 0 });
    expect(registry.repository('os/worker').blobs.has(baseLayer.digest)).toBe(true);
    const again = await pushAppended(client, { ...image, layer: otherLayer }, signal);
    expect(again.bytes).toEqual({ sent: otherLayer.bytes.length, mounted: 0 });
  });

  test('are not asked for in the repository of the base itself', async () => {
    const { registry, client, image, baseLayer } = await setUp('os/stock');
    const previous = image.description.digest;
    const requests = await registry.requestsOf(() => pushAppended(client, { ...image, previous }, signal));
    expect(requests.join('\n')).not.toContain(baseLayer.digest);
    expect(requests.join('\n')).not.toContain(encodeURIComponent(baseLayer.digest));
    expect(requests.filter((line) => line.startsWith('GET'))).toEqual([]);
  });

  test('come from another registry as they are', async () => {
    const { image, baseLayer } = await setUp();
    const other = await MemoryRegistry.start();
    const both = createRegistryClient({ plainHttp: new Set([image.base.registry, other.host]) });
    const target = parseReference(`${other.host}/os/stock:build-1`);
    const { bytes } = await pushAppended(both, { ...image, target }, signal);
    expect(bytes).toEqual({ sent: layer.bytes.length + baseLayer.size, mounted: 0 });
    expect(other.requests.join('\n')).not.toContain(`mount=${encodeURIComponent(baseLayer.digest)}`);
    expect(digestOf(other.repository('os/stock').blobs.get(baseLayer.digest) ?? Buffer.of())).toBe(
      baseLayer.digest,
    );
  });
});

describe('the previous image of the repository', () => {
  async function withPrevious(prepare: (client: RegistryClient, target: Reference) => Promise<unknown>) {
    const { registry, client, image, baseLayer } = await setUp();
    const first = await pushAppended(client, image, signal);
    await prepare(client, image.target);
    const next = { ...image, layer: otherLayer, previous: first.digest };
    const requests = await registry.requestsOf(() => pushAppended(client, next, signal));
    return requests.some((line) => line.includes(encodeURIComponent(baseLayer.digest)));
  }

  test('shows that the base is there: its layers are not asked for one by one', async () => {
    expect(await withPrevious(async () => undefined)).toBe(false);
  });

  test('that is gone shows nothing', async () => {
    expect(
      await withPrevious(async (client, target) => {
        const { digest } = await client.getManifest(target, signal);
        await client.deleteManifest(target, digest, signal);
      }),
    ).toBe(true);
  });

  test('that has only some layers of the base shows nothing', async () => {
    const { registry, client, image } = await setUp();
    const before = await pushAppended(client, image, signal);
    const [first] = image.description.manifest.layers;
    const missing = { ...first, digest: digestOf(otherLayer.bytes), size: otherLayer.bytes.length };
    await client.putBlob(image.base, otherLayer.bytes, signal);
    const description = {
      ...image.description,
      manifest: { ...image.description.manifest, layers: [first, missing] as Manifest['layers'] },
    };
    const requests = await registry.requestsOf(() =>
      pushAppended(client, { ...image, description, previous: before.digest }, signal),
    );
    expect(registry.repository('os/worker').blobs.has(missing.digest)).toBe(true);
    // Before the manifest, not because the registry refused one that names a blob it doesn't have.
    expect(requests.filter((line) => line.startsWith('PUT os/worker/manifests/'))).toHaveLength(1);
  });

  test('that can not be read fails the push', async () => {
    const { registry, client, image } = await setUp();
    const { digest: previous } = await pushAppended(client, image, signal);
    registry.refuse = (line) => (line.startsWith('GET') ? { status: 403, code: 'DENIED' } : undefined);
    await expect(pushAppended(client, { ...image, previous }, signal)).rejects.toMatchObject({ status: 403 });
  });
});

describe('a push', () => {
  test('of the same layer with other labels sends no layer', async () => {
    const { client, image } = await setUp();
    await pushAppended(client, image, signal);
    const relabelled = { ...image, options: { ...options, labels: { own: 'other' } } };
    expect(await pushAppended(client, relabelled, signal)).toMatchObject({
      layerSent: false,
      bytes: { sent: 0 },
    });
    const bare = await pushAppended(client, { ...image, layer: undefined }, signal);
    expect(bare).toMatchObject({ layerSent: false, bytes: { sent: 0 } });
  });

  test('brings every part again where one was deleted before the manifest came', async () => {
    const { registry, client, image, baseLayer } = await setUp();
    let isDeleted = false;
    registry.refuse = (line) => {
      if (line.startsWith('PUT os/worker/manifests/') && !isDeleted) {
        isDeleted = true;
        registry.repository('os/worker').blobs.clear();
      }
      return undefined;
    };
    const { digest: previous } = await pushAppended(client, image, signal);
    expect(isDeleted).toBe(true);
    expect(registry.repository('os/worker').blobs.has(baseLayer.digest)).toBe(true);
    isDeleted = false;
    const pushed = await pushAppended(client, { ...image, previous }, signal);
    expect(pushed.layerSent).toBe(true);
    expect(registry.repository('os/worker').blobs.has(baseLayer.digest)).toBe(true);
  });

  test('of no layer whose parts were deleted sends none', async () => {
    const { registry, client, image } = await setUp();
    let refusals = 0;
    registry.refuse = (line) => {
      if (!line.startsWith('PUT os/worker/manifests/') || refusals > 0) return undefined;
      refusals += 1;
      return { status: 400, code: 'BLOB_UNKNOWN' };
    };
    expect(await pushAppended(client, { ...image, layer: undefined }, signal)).toMatchObject({
      layerSent: false,
    });
  });

  test('whose manifest is refused for another reason fails at once', async () => {
    const { registry, client, image } = await setUp();
    registry.refuse = (line) =>
      line.startsWith('PUT os/worker/manifests/') ? { status: 400, code: 'MANIFEST_INVALID' } : undefined;
    await expect(pushAppended(client, image, signal)).rejects.toMatchObject({ code: 'MANIFEST_INVALID' });
    expect(registry.requests.filter((line) => line.includes('/manifests/build-1'))).toHaveLength(1);
  });
});

describe("an engine's image", () => {
  test.each([
    ['application/vnd.oci.image.manifest.v1+json', 'application/vnd.oci.image.layer.v1.tar+gzip'],
    [
      'application/vnd.docker.distribution.manifest.v2+json',
      'application/vnd.docker.image.rootfs.diff.tar.gzip',
    ],
  ])('on a base of type %s has layers of type %s', async (mediaType, layerType) => {
    const { registry, client, image, baseLayer } = await setUp();
    const dir = await mkdtemp(path.join(tmpdir(), 'shale-push-'));
    onTestFinished(() => rm(dir, { recursive: true }));
    const files = ['one', 'two'].map((name) => path.join(dir, name));
    for (const file of files) await writeFile(file, `content of ${path.basename(file)}`);
    const config = Buffer.from('{"a":"configuration"}');
    const description = { ...image.description, mediaType };
    const given = { base: image.base, description, config, layers: files };
    const digest = await pushOnBase(client, given, image.target, signal);
    const { blobs, manifests } = registry.repository('os/worker');
    const manifest = JSON.parse(String(manifests.get('build-1')?.bytes)) as Manifest;
    expect(manifests.get(digest)).toBe(manifests.get('build-1'));
    expect(manifests.get(digest)?.mediaType).toBe(mediaType);
    expect(manifest).toMatchObject({
      schemaVersion: 2,
      mediaType,
      config: { digest: digestOf(config), size: config.length },
    });
    expect(manifest.layers.map((blob) => blob.mediaType)).toEqual([
      baseLayer.mediaType,
      layerType,
      layerType,
    ]);
    const own = manifest.layers.slice(1).map((blob) => {
      expect(blobs.get(blob.digest)).toHaveLength(blob.size);
      return gunzipSync(blobs.get(blob.digest) ?? Buffer.of()).toString();
    });
    expect(own).toEqual(['content of one', 'content of two']);
    // The disk has room for one compressed layer at a time.
    expect((await readdir(dir)).sort()).toEqual(['one', 'two']);
  });
});
