/** The requests of a push to docker-registry: what is sent, mounted, asked for and never read. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { Digest } from '../api/references.ts';
import { deadline } from '../test/fixtures/patience.ts';
import { pushBaseImage } from '../test/fixtures/registry/base-image.ts';
import { startDockerRegistry } from '../workshop/sandbox/docker-registry.ts';
import { describeImage } from './append.ts';
import { digestOf } from './digest.ts';
import type { LayerEntry } from './layer/entry.ts';
import { writeLayer } from './layer/write-layer.ts';
import { pushAppended } from './push-image.ts';
import { parseReference } from './reference.ts';
import { createRegistryClient, type RegistryClient } from './registry/registry-client.ts';
import { ContentError } from './registry/registry-error.ts';

const signal = deadline(300_000);
const mediaType = 'application/vnd.oci.image.manifest.v1+json';
const indexType = 'application/vnd.oci.image.index.v1+json';
const file = (name: string, text: string): LayerEntry => ({
  type: 'file',
  path: name,
  mode: 0o644,
  uid: 0,
  gid: 0,
  content: Buffer.from(text),
});
const options = { labels: { 'dev.shale.pool': 'worker' }, created: '1970-01-01T00:00:00Z', comment: 'shale' };

async function setUp() {
  const dir = await mkdtemp(path.join(tmpdir(), 'append-'));
  const registry = await startDockerRegistry({ dir });
  onTestFinished(async () => {
    await registry.stop();
    await rm(dir, { recursive: true });
  });
  const requests: string[] = [];
  const client = createRegistryClient({
    plainHttp: new Set([registry.host]),
    onRequest: ({ method, url }) => requests.push(`${method} ${new URL(url).pathname}`),
  });
  await pushBaseImage(client, `${registry.host}/os/stock:1`, signal);
  const base = parseReference(`${registry.host}/os/stock:1`);
  requests.length = 0;
  return { client, host: registry.host, base, requests };
}

test('an image is base + one layer, and no byte of the base is read or sent', async () => {
  const { client, base, host, requests } = await setUp();
  const target = parseReference(`${host}/os/worker:build-1`);
  const description = await describeImage(client, base, 'amd64', signal);
  const layer = await writeLayer([file('/etc/chrony.conf', 'pool x')]);
  const { digest } = await pushAppended(client, { base, description, target, layer, options }, signal);
  const baseLayer = description.manifest.layers[0]?.digest;
  expect(requests.filter((line) => line.startsWith('GET') && line.includes(`blobs/${baseLayer}`))).toEqual(
    [],
  );
  const made = await describeImage(client, { ...target, digest }, 'amd64', signal);
  expect(made.manifest.layers.map((blob) => blob.digest)).toEqual([baseLayer, layer.digest]);
  expect(made.config.rootfs.diff_ids.at(-1)).toBe(layer.diffId);
  expect(made.config.config?.Labels).toEqual({ kept: 'yes', 'dev.shale.pool': 'worker' });
  expect(made.config).toMatchObject({ author: 'somebody' });
});

test('the same input is the same image', async () => {
  const { client, base, host } = await setUp();
  const description = await describeImage(client, base, 'amd64', signal);
  const layer = await writeLayer([file('/etc/a', 'a')]);
  const push = (name: string) =>
    pushAppended(
      client,
      { base, description, target: parseReference(`${host}/os/${name}:1`), layer, options },
      signal,
    );
  const one = await push('one');
  expect((await push('other')).digest).toBe(one.digest);
  expect(await push('one')).toMatchObject({ digest: one.digest, layerSent: false, bytes: { sent: 0 } });
});

test('other labels are another image of the same layers', async () => {
  const { client, base, host, requests } = await setUp();
  const first = parseReference(`${host}/os/worker:1`);
  const layer = await writeLayer([file('/etc/a', 'a')]);
  const description = await describeImage(client, base, 'amd64', signal);
  const { digest } = await pushAppended(client, { base, description, target: first, layer, options }, signal);
  const made = await describeImage(client, { ...first, digest }, 'amd64', signal);
  requests.length = 0;
  const { digest: relabelled } = await pushAppended(
    client,
    {
      base: first,
      description: made,
      target: { ...first, tag: '2' },
      layer: undefined,
      options: { ...options, labels: { 'dev.shale.pool': 'infra' } },
    },
    signal,
  );
  const after = await describeImage(client, { ...first, digest: relabelled }, 'amd64', signal);
  expect(after.manifest.layers).toEqual(made.manifest.layers);
  expect(after.config.config?.Labels?.['dev.shale.pool']).toBe('infra');
  expect(requests.length).toBeLessThan(10);
});

test("the base's layers are not asked for where the image before stands on them", async () => {
  const { client, base, host, requests } = await setUp();
  const target = parseReference(`${host}/os/worker:1`);
  const description = await describeImage(client, base, 'amd64', signal);
  const push = async (content: string, previous?: Digest) => {
    const layer = await writeLayer([file('/etc/a', content)]);
    requests.length = 0;
    const image = { base, description, target, layer, options };
    return pushAppended(client, previous === undefined ? image : { ...image, previous }, signal);
  };
  const mounts = () => requests.filter((request) => request.includes('POST')).length;
  const first = await push('a');
  const withMounts = mounts();
  const second = await push('b', first.digest);
  expect(mounts()).toBe(withMounts - description.manifest.layers.length);
  expect(second.bytes.mounted).toBe(0);
  await client.deleteManifest(target, second.digest, signal);
  const third = await push('c', second.digest);
  expect(third.bytes.mounted).toBeGreaterThan(0);
});

test('a layer that somebody deletes before the manifest comes is sent again', async () => {
  const { client, base, host } = await setUp();
  const target = parseReference(`${host}/os/worker:1`);
  const description = await describeImage(client, base, 'amd64', signal);
  const layer = await writeLayer([file('/etc/a', 'a')]);
  let puts = 0;
  const putManifest = client.putManifest.bind(client);
  const disturbed: RegistryClient = Object.assign(client, {
    async putManifest(...args: Parameters<RegistryClient['putManifest']>) {
      puts += 1;
      if (puts === 1) {
        const blob = `http://${host}/v2/${target.repository}/blobs/${layer.digest}`;
        expect((await fetch(blob, { method: 'DELETE', signal })).status).toBe(202);
      }
      return putManifest(...args);
    },
  });
  const { digest } = await pushAppended(disturbed, { base, description, target, layer, options }, signal);
  expect(puts).toBe(2);
  expect(await client.hasBlob(target, layer.digest, signal)).toBe(true);
  expect((await client.getManifest({ ...target, digest }, signal)).digest).toBe(digest);
});

test('an image before that stands on a part of the base alone saves no question', async () => {
  const { client, base, host } = await setUp();
  const target = parseReference(`${host}/os/worker:1`);
  const lower = await describeImage(client, base, 'amd64', signal);
  const layer = await writeLayer([file('/etc/a', 'a')]);
  const onLower = { base, description: lower, target, layer, options };
  const { digest: previous } = await pushAppended(client, onLower, signal);
  const higher = parseReference(`${host}/os/stock:2`);
  const more = await writeLayer([file('/usr/lib/b', 'b')]);
  await pushAppended(client, { ...onLower, target: higher, layer: more }, signal);
  const description = await describeImage(client, higher, 'amd64', signal);
  const image = { base: higher, description, target, layer, options, previous };
  const { bytes } = await pushAppended(client, image, signal);
  const sizes = description.manifest.layers.map(({ size }) => size);
  expect(sizes).toHaveLength(2);
  expect(bytes.mounted).toBe(sizes.reduce((sum, size) => sum + size, 0));
});

test('a layer of the base that the registry lost is mounted again, whatever the image before stands on', async () => {
  const { client, base, host } = await setUp();
  const target = parseReference(`${host}/os/worker:1`);
  const description = await describeImage(client, base, 'amd64', signal);
  const layer = await writeLayer([file('/etc/a', 'a')]);
  const image = { base, description, target, layer, options };
  const { digest: previous } = await pushAppended(client, image, signal);
  const [lost] = description.manifest.layers;
  if (lost === undefined) throw new Error('the base has no layer');
  const blob = `http://${host}/v2/${target.repository}/blobs/${lost.digest}`;
  expect((await fetch(blob, { method: 'DELETE', signal })).status).toBe(202);
  const other = await writeLayer([file('/etc/a', 'b')]);
  const { digest } = await pushAppended(client, { ...image, layer: other, previous }, signal);
  expect(await client.hasBlob(target, lost.digest, signal)).toBe(true);
  const made = await describeImage(client, { ...target, digest }, 'amd64', signal);
  expect(made.manifest.layers.map((each) => each.digest)).toEqual([lost.digest, other.digest]);
});

test('an index gives the image of the architecture, or says what there is', async () => {
  const { client, base } = await setUp();
  const { digest } = await client.getManifest(base, signal);
  const index = {
    schemaVersion: 2,
    mediaType: indexType,
    manifests: [{ mediaType, digest, size: 1, platform: { os: 'linux', architecture: 'amd64' } }],
  };
  const at = { ...base, tag: 'index' };
  await client.putManifest(at, { mediaType: indexType, bytes: Buffer.from(JSON.stringify(index)) }, signal);
  expect((await describeImage(client, at, 'amd64', signal)).digest).toBe(digest);
  await expect(describeImage(client, at, 'arm64', signal)).rejects.toThrow(
    /no image for linux\/arm64; the index has linux\/amd64/,
  );
});

test('a base that is no image is refused', async () => {
  const { client, base } = await setUp();
  const fake: RegistryClient = Object.assign(client, {
    getManifest: async () => ({ digest: digestOf(''), mediaType: '', bytes: Buffer.from('[]') }),
  });
  await expect(describeImage(fake, base, 'amd64', signal)).rejects.toThrow(ContentError);
});
