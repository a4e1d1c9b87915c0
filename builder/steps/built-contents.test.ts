import { expect, test } from 'vitest';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { policyDigest } from '../../disruption/effective-policies.ts';
import { BaseTrees } from '../../image/base/base-trees.ts';
import { parseReference } from '../../image/reference.ts';
import { listReferrers } from '../../image/referrers.ts';
import { createRegistryClient } from '../../image/registry/registry-client.ts';
import { aConfigWithFile } from '../../test/fixtures/objects.ts';
import { deadline } from '../../test/fixtures/patience.ts';
import { baseFile, pushLayers } from '../../test/fixtures/registry/linked-base.ts';
import { MemoryRegistry } from '../../test/fixtures/registry/memory-registry.ts';
import { Seal } from '../attest/seal-image.ts';
import type { BuildResult } from '../status.ts';
import { type AppendInput, appendBuild } from './append-build.ts';

const signal = deadline(300_000);
const packages = (versions: Readonly<Record<string, string>>) =>
  baseFile(
    '/var/lib/dpkg/status',
    Object.entries(versions)
      .map(([name, version]) => `Package: ${name}\nArchitecture: amd64\nVersion: ${version}\n`)
      .join('\n'),
  );
const kernel = (version: string) => baseFile(`/usr/lib/modules/${version}/vmlinuz`);
const OLD = { chrony: '4.3', telnet: '0.17' };
const NEW = { chrony: '4.6', nftables: '1.1' };
const policies = { files: [], units: [], sshKey: { actions: [] } } as never;

/** As the status of a build has it. */
const statusOf = ({ image, baseImage, baseRecord }: BuildResult): Pick<MachineOSBuild, 'status'> => ({
  status: { digestedImagePushSpec: image, baseImage, baseRecord } as never,
});

async function setUp() {
  const registry = await MemoryRegistry.start();
  const client = createRegistryClient({ plainHttp: new Set([registry.host]) });
  const stock = (tag: number) => `${registry.host}/os/stock:${tag}`;
  await pushLayers(client, stock(1), [[packages(OLD), kernel('6.12.9')]], signal);
  await pushLayers(client, stock(2), [[packages(NEW), kernel('6.12.14')]], signal);
  const build = (tag: number, more: Partial<AppendInput> = {}) => {
    const input = {
      pool: 'worker',
      rendered: aConfigWithFile,
      baseImage: stock(tag),
      policies,
      policyDigest: policyDigest(policies),
      froms: [],
      architecture: 'amd64',
      version: '0',
      created: '1970-01-01T00:00:00Z',
      pushSpec: `${registry.host}/os/worker:build-${tag}`,
      baseRecords: [],
      seal: new Seal({ attest: true }),
    };
    return appendBuild(client, { ...input, ...more }, signal);
  };
  return { registry, client, build };
}

test('the first image of a pool has a list of what it has, and nothing to be compared with', async () => {
  const { client, build } = await setUp();
  const { image, contents } = await build(1);
  expect(contents).toEqual({
    summary: 'unknown, 2 packages, kernel 6.12.9',
    record: expect.stringContaining('/os/worker@sha256:'),
  });
  const at = parseReference(image);
  if (at.digest === undefined) throw new Error('an image by digest is needed');
  const referrers = await listReferrers(client, at, at.digest, signal);
  const attached = referrers.find(({ artifactType }) => artifactType.includes('image-contents'));
  expect(contents?.record).toContain(attached?.digest);
  expect((await build(1)).contents).toEqual(contents);
});

test('the next image says what a new base changes, and reads none of its layers twice', async () => {
  const { registry, build } = await setUp();
  const first = await build(1);
  const baseTrees = new BaseTrees();
  let contents: BuildResult['contents'];
  const requests = await registry.requestsOf(async () => {
    contents = (await build(2, { baseTrees, previousBuild: statusOf(first) })).contents;
  });
  expect(contents).toMatchObject({
    summary: '3 packages (1 added, 1 removed, 1 upgraded), kernel 6.12.9 -> 6.12.14',
    previousImage: first.image,
    base: { from: first.baseImage },
    packages: {
      added: 1,
      removed: 1,
      upgraded: 1,
      downgraded: 0,
      changed: 0,
      first: [
        { change: 'removed', name: 'telnet', from: '0.17' },
        { change: 'added', name: 'nftables', to: '1.1' },
        { change: 'upgraded', name: 'chrony', from: '4.3', to: '4.6' },
      ],
    },
    kernels: { from: ['6.12.9'], to: ['6.12.14'] },
  });
  const layers = requests.filter((request) => request.startsWith('GET os/stock/blobs/'));
  // Its configuration and its one layer, and nothing of the base before.
  expect(layers).toHaveLength(2);
});

test('an image with the same contents has no summary', async () => {
  const { build } = await setUp();
  const previousBuild = statusOf(await build(1));
  const { contents } = await build(1, { previousBuild });
  expect(contents?.summary).toBeUndefined();
  expect(contents?.packages).toMatchObject({ upgraded: 0, first: [] });
});

test.each<[string, (build: Pick<MachineOSBuild, 'status'>) => object, string]>([
  ['has no record of its base', (build) => ({ ...build.status, baseRecord: undefined }), 'without a record'],
  [
    'has one that is gone',
    ({ status }) => ({
      ...status,
      baseRecord: {
        ...status?.baseRecord,
        image: status?.baseRecord?.image.replace(/[0-9a-f]{64}$/, '0'.repeat(64)),
      },
    }),
    'is gone',
  ],
  [
    'is gone itself',
    ({ status }) => ({
      ...status,
      digestedImagePushSpec: status?.digestedImagePushSpec?.replace(/[0-9a-f]{64}$/, '0'.repeat(64)),
    }),
    "can't be read",
  ],
])('an image before that %s fails no build', async (_, change, why) => {
  const { build } = await setUp();
  const status = change(statusOf(await build(1))) as never;
  const { contents } = await build(2, { previousBuild: { status } });
  expect(contents).toMatchObject({
    summary: 'not compared with the image before',
    unreadable: [expect.stringContaining(why)],
    record: expect.anything(),
  });
});

test('a unit of the layer is in the image', async () => {
  const { build } = await setUp();
  const previousBuild = statusOf(await build(1));
  const unit = {
    name: 'a.service',
    enabled: true,
    contents: '[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n',
  };
  const rendered = {
    ...aConfigWithFile,
    spec: {
      config: { ignition: { version: '3.5.0' }, systemd: { units: [unit] } },
      kernelArguments: ['quiet'],
    },
  };
  const { contents } = await build(1, { rendered, previousBuild });
  expect(contents?.summary).toBe('1 kernel argument, 1 unit enabled');
});

test('a status is small whatever an image has', async () => {
  const { registry, client, build } = await setUp();
  const first = await build(1);
  const many = Object.fromEntries(
    Array.from({ length: 3000 }, (_, index) => [`${'n'.repeat(900)}${index}`, '1'.repeat(900)]),
  );
  const kernels = Array.from({ length: 50 }, (_, index) => kernel(`${'6'.repeat(200)}.${index}`));
  const baseImage = `${registry.host}/os/stock:3`;
  await pushLayers(client, baseImage, [[packages(many), ...kernels]], signal);
  const { contents } = await build(3, { previousBuild: statusOf(first) });
  expect(contents?.packages?.added).toBe(3000);
  expect(JSON.stringify(contents).length).toBeLessThan(20_000);
  const { BuildContents } = await import('../../api/build-contents.ts');
  expect(BuildContents.safeParse(contents).error).toBeUndefined();
});
