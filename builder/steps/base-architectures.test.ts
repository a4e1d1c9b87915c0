import { expect, test } from 'vitest';
import { pushIndex } from '../../image/image-index.ts';
import { createRegistryClient, type RegistryClient } from '../../image/registry/registry-client.ts';
import { deadline } from '../../test/fixtures/patience.ts';
import { pushBaseImage } from '../../test/fixtures/registry/base-image.ts';
import { MemoryRegistry } from '../../test/fixtures/registry/memory-registry.ts';
import { BuildFailure } from '../build-failure.ts';
import { byBase } from './base-architectures.ts';

const signal = deadline(60_000);

/** A registry with an index for two architectures and an image for one. */
async function bases() {
  const { host: registry } = await MemoryRegistry.start();
  const client = createRegistryClient({ plainHttp: new Set([registry]) });
  const amd64 = await pushBaseImage(client, `${registry}/os/stock:amd64`, signal);
  const arm64 = await pushBaseImage(client, `${registry}/os/stock:arm64`, signal, 'arm64');
  await pushIndex(client, { registry, repository: 'os/stock', tag: 'both' }, [amd64, arm64], signal);
  return (tag: string, ...architectures: readonly string[]) =>
    byBase(client, { baseImage: `${registry}/os/stock:${tag}`, architectures }, signal);
}

test.each([
  ['both', ['amd64', 'arm64'], ['amd64', 'arm64'], []],
  ['both', ['s390x', 'arm64', 'riscv64'], ['arm64'], ['s390x', 'riscv64']],
  ['both', ['s390x', 'riscv64'], ['s390x', 'riscv64'], []],
  ['amd64', ['amd64', 'arm64'], ['amd64'], ['arm64']],
])('of base image %s, for %j are built %j, and %j are left', async (tag, asked, built, left) => {
  expect(await (await bases())(tag, ...asked)).toEqual({ built, left });
});

test('one architecture alone is not looked up', async () => {
  const none = {} as RegistryClient;
  const asked = { baseImage: 'r.io/os:1', architectures: ['s390x'] };
  expect(await byBase(none, asked, signal)).toEqual({ built: ['s390x'], left: [] });
});

test('a base image that can not be looked up is a failure of the build, and an end of the builder is none', async () => {
  await expect((await bases())('gone', 'amd64', 'arm64')).rejects.toThrow(BuildFailure);
  const broken = { getManifest: () => Promise.reject(new Error('broken')) } as unknown as RegistryClient;
  const asked = { baseImage: 'r.io/os:1', architectures: ['amd64', 'arm64'] };
  const stopped = new RangeError('stopped');
  await expect(byBase(broken, asked, AbortSignal.abort(stopped))).rejects.toBe(stopped);
});
