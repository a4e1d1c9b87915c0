/**
 * A kubelet's credentials write any architecture into the status of its Node: the pool's image is built for others,
 * too.
 */
import { expect, onTestFinished, test } from 'vitest';
import { parseDigestedPullspec } from '../../api/references.ts';
import { byBase } from '../../builder/steps/base-architectures.ts';
import { registrySource } from '../../daemon/os/ostree/registry-source.ts';
import { pushIndex } from '../../image/image-index.ts';
import { poolStatus } from '../../rollout/pools/pool-status.ts';
import { aState } from '../fixtures/objects.ts';
import { deadline } from '../fixtures/patience.ts';
import { inputs } from '../fixtures/pool-status-inputs.ts';
import { pushBaseImage } from '../fixtures/registry/base-image.ts';
import { startRegistryWithImage } from '../fixtures/registry/registry-with-image.ts';

const signal = deadline(60_000);

function builtFor(reported: readonly string[]): readonly string[] | undefined {
  const states = reported.map((architecture, index) => aState(`n${index}`, { architecture }));
  return poolStatus(inputs({ states }), 0).architectures;
}

test.each([
  [['amd64', 'riscv64', 'amd64'], ['amd64']],
  [
    ['arm64', 'x'.repeat(1_000_000), 'amd64', ''],
    ['amd64', 'arm64'],
  ],
  [['amd64', ...Array.from({ length: 12 }, (_, index) => `made${index}`)], ['amd64']],
  [['amd64', 'amd64\nlinux'], ['amd64']],
])('nodes that report %j have images built for %j', (reported, expected) => {
  expect(builtFor(reported)).toEqual(expected);
});

test('a pool all of whose nodes are of a less common architecture has images for that', () => {
  expect(builtFor(['riscv64', 'riscv64'])).toEqual(['riscv64']);
});

test('a node that reports an architecture without a base image stops no build of the others', async () => {
  const { client, at, stop } = await startRegistryWithImage(signal);
  onTestFinished(stop);
  const { registry } = at;
  const amd64 = await pushBaseImage(client, `${registry}/os/stock:amd64`, signal);
  const arm64 = await pushBaseImage(client, `${registry}/os/stock:arm64`, signal, 'arm64');
  await pushIndex(client, { registry, repository: 'os/stock', tag: '1' }, [amd64, arm64], signal);
  const of = (baseImage: string, ...architectures: string[]) =>
    byBase(client, { baseImage, architectures }, signal);

  expect(await of(`${registry}/os/stock:1`, 'amd64', 'arm64', 's390x')).toEqual({
    built: ['amd64', 'arm64'],
    left: ['s390x'],
  });
  expect(await of(`${registry}/os/stock:amd64`, 'amd64', 's390x')).toEqual({
    built: ['amd64'],
    left: ['s390x'],
  });
  // Nothing to build: the build says why.
  expect(await of(`${registry}/os/stock:1`, 'ppc64le', 's390x')).toEqual({
    built: ['ppc64le', 's390x'],
    left: [],
  });
});

test('the node itself refuses an image of another architecture, before any of it is pulled', async () => {
  const { client, at, dir, stop } = await startRegistryWithImage(signal);
  onTestFinished(stop);
  const { registry } = at;
  const digest = await pushBaseImage(client, `${registry}/os/worker:1`, signal, 'riscv64');
  const image = parseDigestedPullspec(`${registry}/os/worker@${digest}`);
  const source = registrySource({ root: dir, plainHttp: new Set([registry]) });
  await expect(source.open(image, signal)).rejects.toMatchObject({
    name: 'PrepareRefused',
    message: expect.stringMatching(/is for linux\/riscv64, and this node is linux\/\w+/),
  });
});
