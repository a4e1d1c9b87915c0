import { describe, expect, test } from 'vitest';
import { Secrets } from '../api/kubernetes.ts';
import { type DigestedPullspec, parseDigestedPullspec, pullspecDigest } from '../api/references.ts';
import { pushIndex } from '../image/image-index.ts';
import { parseReference } from '../image/reference.ts';
import { createRegistryClient } from '../image/registry/registry-client.ts';
import type { LeftImages } from '../opt-in/pushed-images/decide-left.ts';
import { MemoryCluster } from '../test/fixtures/fleet/memory-cluster.ts';
import { deadline } from '../test/fixtures/patience.ts';
import { pushBaseImage } from '../test/fixtures/registry/base-image.ts';
import { MemoryRegistry } from '../test/fixtures/registry/memory-registry.ts';
import { leftImagePruner } from './left-images.ts';

const signal = deadline(60_000);
const TAG = `worker-${'a'.repeat(32)}`;

async function setUp() {
  const registry = await MemoryRegistry.start();
  const cluster = new MemoryCluster();
  const plainHttp = new Set([registry.host]);
  const client = createRegistryClient({ plainHttp });
  const repository = `${registry.host}/os/worker`;
  const digest = await pushBaseImage(client, `${repository}:${TAG}`, signal);
  const image = parseDigestedPullspec(`${repository}@${digest}`);
  const auths = { auths: { [registry.host]: { username: 'u', password: 'p' } } };
  cluster.put(Secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'push' },
    data: { '.dockerconfigjson': Buffer.from(JSON.stringify(auths)).toString('base64') },
  });
  const tagAs = async (tag: string) => {
    const manifest = await client.getManifest(parseReference(image), signal);
    await client.putManifest(parseReference(`${repository}:${tag}`), manifest, signal);
  };
  const left: LeftImages = { build: 'a', pool: 'worker', repository, pushSecret: 'push', images: [image] };
  const pruner = leftImagePruner({ client: cluster.client(), namespace: 'shale', plainHttp });
  return { registry, client, repository, image, tagAs, left, pruner };
}

describe('an image has a tag of somebody else', () => {
  test.each([
    ['none, but that of its build', [], false],
    ['none, but that of an image of an index', [`${TAG}-arm64`], false],
    ['a name of theirs', ['tested'], true],
    ['the tag for new nodes', ['current'], true],
    ['the tag of its build with a word', [`${TAG}-tested`], true],
  ] as const)('%s', async (_what, tags, isTheirs) => {
    const { image, left, pruner, tagAs } = await setUp();
    for (const tag of tags) await tagAs(tag);
    expect([...(await pruner.taggedByOthers(left, signal))]).toEqual(isTheirs ? [pullspecDigest(image)] : []);
  });

  test('where an index of theirs has it', async () => {
    const { client, image, left, pruner, repository } = await setUp();
    const index = await pushIndex(
      client,
      parseReference(`${repository}:theirs`),
      [pullspecDigest(image)],
      signal,
    );
    expect(await pruner.taggedByOthers(left, signal)).toEqual(new Set([index, pullspecDigest(image)]));
  });

  test('but not of what was the tag for new nodes of a pool that is layered no more', async () => {
    const { left, pruner, tagAs } = await setUp();
    await tagAs('current');
    expect(await pruner.taggedByOthers({ ...left, retiredTag: 'current' }, signal)).toEqual(new Set());
  });

  test('and none in a repository that is gone', async () => {
    const { left, pruner, repository } = await setUp();
    expect(await pruner.taggedByOthers({ ...left, repository: `${repository}-gone` }, signal)).toEqual(
      new Set(),
    );
  });
});

test('it is deleted with the Secret that its pool pushes with, and what is gone already is no failure', async () => {
  const { image, left, pruner, registry } = await setUp();
  await pruner.deleteImage(image, left, signal);
  expect(registry.repository('os/worker').manifests.size).toBe(0);
  await pruner.deleteImage(image, left, signal);
  await expect(pruner.deleteImage(image, { ...left, pushSecret: 'gone' }, signal)).rejects.toThrow(
    'Secret shale/gone: not found',
  );
});

test('it is never deleted by tag', async () => {
  const { left, pruner, repository } = await setUp();
  await expect(pruner.deleteImage(`${repository}:${TAG}` as DigestedPullspec, left, signal)).rejects.toThrow(
    new TypeError(`${repository}:${TAG}: expected an image by digest`),
  );
});
