import { describe, expect, test } from 'vitest';
import { Secrets } from '../api/kubernetes.ts';
import type { MachineOSBuild } from '../api/machine-os-build.ts';
import { annotations } from '../api/names.ts';
import { type DigestedPullspec, parseDigestedPullspec } from '../api/references.ts';
import { createRegistryClient } from '../image/registry/registry-client.ts';
import { MemoryCluster } from '../test/fixtures/fleet/memory-cluster.ts';
import { aBuild } from '../test/fixtures/objects.ts';
import { deadline } from '../test/fixtures/patience.ts';
import { pushBaseImage } from '../test/fixtures/registry/base-image.ts';
import { MemoryRegistry } from '../test/fixtures/registry/memory-registry.ts';
import { registryPruner } from './registry.ts';

const signal = deadline(60_000);

async function setUp() {
  const registry = await MemoryRegistry.start();
  const cluster = new MemoryCluster();
  const plainHttp = new Set([registry.host]);
  const name = `${registry.host}/os/worker`;
  const digest = await pushBaseImage(createRegistryClient({ plainHttp }), `${name}:1`, signal);
  const auths = { auths: { [registry.host]: { username: 'u', password: 'p' } } };
  cluster.put(Secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'push' },
    data: { '.dockerconfigjson': Buffer.from(JSON.stringify(auths)).toString('base64') },
  });
  return {
    registry,
    name,
    image: parseDigestedPullspec(`${name}@${digest}`),
    manifests: registry.repository('os/worker').manifests,
    options: { client: cluster.client(), namespace: 'shale', plainHttp },
  };
}

function pushedWith(secret: string | undefined): MachineOSBuild {
  const build = aBuild('worker-1', 'rendered-worker-1');
  const named = secret === undefined ? {} : { [annotations.pushSecret]: secret };
  return { ...build, metadata: { ...build.metadata, annotations: named } };
}

describe('an image that is pruned', () => {
  test.each([undefined, 'push'])('is deleted with the Secret that it was pushed with: %s', async (secret) => {
    const { options, image, manifests } = await setUp();
    await registryPruner(options).deleteImage(image, pushedWith(secret), signal);
    expect([...manifests.keys()]).toEqual([]);
    // Once it is gone there is nothing to do.
    await registryPruner(options).deleteImage(image, pushedWith(secret), signal);
  });

  test('stays where that Secret is missing', async () => {
    const { options, image, manifests } = await setUp();
    await expect(registryPruner(options).deleteImage(image, pushedWith('gone'), signal)).rejects.toThrow(
      'Secret shale/gone: not found',
    );
    expect(manifests.size).toBe(2);
  });

  test('is never one that is named by tag, which may be another one by now', async () => {
    const { options, name, registry, manifests } = await setUp();
    const requests = await registry.requestsOf(() =>
      expect(
        registryPruner(options).deleteImage(`${name}:1` as DigestedPullspec, pushedWith('push'), signal),
      ).rejects.toThrow(new TypeError(`${name}:1: expected an image by digest`)),
    );
    expect(requests).toEqual([]);
    expect(manifests.size).toBe(2);
  });
});

describe('a tag', () => {
  test('names an image by digest, or none', async () => {
    const { options, image, name } = await setUp();
    const imageAt = (tag: string) =>
      registryPruner(options).imageAt(`${name}:${tag}`, pushedWith('push'), signal);
    expect(await imageAt('1')).toBe(image);
    expect(await imageAt('2')).toBeUndefined();
  });

  test('can not be read where the Secret is missing', async () => {
    const { options, name } = await setUp();
    await expect(registryPruner(options).imageAt(`${name}:1`, pushedWith('gone'), signal)).rejects.toThrow(
      'Secret shale/gone: not found',
    );
  });
});
