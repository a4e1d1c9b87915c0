import { expect, test } from 'vitest';
import { imageLabels } from '../../api/names.ts';
import type { DigestedPullspec } from '../../api/references.ts';
import {
  defaultPolicySettings,
  effectivePolicies,
  policyDigest,
} from '../../disruption/effective-policies.ts';
import { describeImage } from '../../image/append.ts';
import { pushIndex } from '../../image/image-index.ts';
import { parseManifest } from '../../image/manifest.ts';
import { formatReference, parseReference } from '../../image/reference.ts';
import { createRegistryClient } from '../../image/registry/registry-client.ts';
import { isImageSignedBy } from '../../image/signature/sign-image.ts';
import { givenEngine } from '../../test/fixtures/given-engine.ts';
import { aBuild, aSuccess } from '../../test/fixtures/objects.ts';
import { deadline } from '../../test/fixtures/patience.ts';
import { pushBaseImage } from '../../test/fixtures/registry/base-image.ts';
import { MemoryRegistry } from '../../test/fixtures/registry/memory-registry.ts';
import { newSigningKey } from '../../test/fixtures/registry/registry-with-image.ts';
import { Seal } from '../attest/seal-image.ts';
import { Slots } from '../slots.ts';
import { buildForArchitectures, type PoolImageInput } from './build-image.ts';

const signal = deadline(300_000);
const policies = effectivePolicies(undefined, defaultPolicySettings);
const engine = {
  engines: givenEngine(() => Promise.reject(new Error('no commands have to run'))),
  workDir: '/tmp',
  slots: new Slots(1),
  limitMs: 1,
  limitBytes: 2 ** 30,
  built: new Set<DigestedPullspec>(),
  recorded: [],
  onLine: () => undefined,
};

async function setUp() {
  const { host: registry } = await MemoryRegistry.start();
  const client = createRegistryClient({ plainHttp: new Set([registry]) });
  const stock = { registry, repository: 'os/stock' };
  const amd64 = await pushBaseImage(client, `${registry}/os/stock:amd64`, signal);
  const arm64 = await pushBaseImage(client, `${registry}/os/stock:arm64`, signal, 'arm64');
  const base = await pushIndex(client, { ...stock, tag: '1' }, [amd64, arm64], signal);
  const input: PoolImageInput = {
    pool: 'worker',
    rendered: {
      apiVersion: 'machineconfiguration.openshift.io/v1',
      kind: 'MachineConfig',
      metadata: { name: 'rendered-worker-1' },
      spec: { config: { ignition: { version: '3.5.0' } } },
    },
    baseImage: `${registry}/os/stock:1`,
    pushSpec: `${registry}/os/worker:build-1`,
    policies,
    policyDigest: policyDigest(policies),
    froms: [],
    architectures: ['amd64', 'arm64'],
    version: '0',
    created: '1970-01-01T00:00:00Z',
    spec: undefined,
    rebuild: '',
    readSecrets: () => Promise.resolve([]),
  };
  return { client, input, stock, digests: { amd64, arm64, base } };
}

test('a pool of two architectures gets an index with an image for each, on the base for each', async () => {
  const { client, input, stock, digests } = await setUp();
  const result = await buildForArchitectures(client, input, engine, signal);
  expect(result.baseImage).toBe(formatReference({ ...stock, digest: digests.base }));
  const index = await client.getManifest(parseReference(result.image), signal);
  expect(parseManifest(index.bytes, 'it').kind).toBe('index');
  for (const architecture of ['amd64', 'arm64'] as const) {
    const { digest, config } = await describeImage(
      client,
      parseReference(result.image),
      architecture,
      signal,
    );
    const base = formatReference({ ...stock, digest: digests[architecture] });
    expect(config.architecture).toBe(architecture);
    expect(config.config?.Labels?.[imageLabels.baseImage]).toBe(base);
    expect(result.instances).toContainEqual({
      architecture,
      image: formatReference({ ...stock, repository: 'os/worker', digest }),
      baseImage: base,
      contents: { summary: expect.any(String) },
    });
  }
});

test('the same again is the same index', async () => {
  const { client, input } = await setUp();
  const one = await buildForArchitectures(client, input, engine, signal);
  const other = await buildForArchitectures(
    client,
    { ...input, pushSpec: input.pushSpec.replace('build-1', 'build-2') },
    engine,
    signal,
  );
  expect(other.image).toBe(one.image);
});

test('each image of an index is compared with that of its architecture', async () => {
  const { client, input } = await setUp();
  const first = await buildForArchitectures(client, { ...input, baseRecords: [] }, engine, signal);
  const previousBuild = { status: { instances: first.instances } } as never;
  const next = await buildForArchitectures(client, { ...input, previousBuild }, engine, signal);
  expect(next.contents).toBeUndefined();
  expect(next.instances?.map(({ contents }) => [contents?.previousImage, contents?.unreadable])).toEqual(
    first.instances?.map(({ image }) => [image, expect.arrayContaining([])]),
  );
});

test('how it was built is the costliest of what its images needed, and what was moved is the sum', async () => {
  const { client, input } = await setUp();
  const single = (architecture: string, pushSpec: string) =>
    buildForArchitectures(client, { ...input, pushSpec, architectures: [architecture] }, engine, signal);
  const both = (pushSpec: string) => buildForArchitectures(client, { ...input, pushSpec }, engine, signal);
  const amd64 = await single('amd64', input.pushSpec.replace('worker', 'amd64'));
  const arm64 = await single('arm64', input.pushSpec.replace('worker', 'arm64'));
  expect([amd64.way, arm64.way]).toEqual(['Append', 'Append']);
  const first = await both(input.pushSpec);
  expect(first.way).toBe('Append');
  // The config's layer is the same for both: it is sent once.
  expect(first.bytes.sent).toBe(amd64.bytes.sent);
  expect(first.bytes.mounted).toBe(amd64.bytes.mounted + arm64.bytes.mounted);
  expect(Math.min(first.bytes.sent, amd64.bytes.mounted, arm64.bytes.mounted)).toBeGreaterThan(0);
  expect((await both(input.pushSpec.replace('build-1', 'build-2'))).way).toBe('Relabel');
});

test('one architecture is an image without an index, the same as in the index', async () => {
  const { client, input } = await setUp();
  const both = await buildForArchitectures(client, input, engine, signal);
  const one = await buildForArchitectures(client, { ...input, architectures: ['arm64'] }, engine, signal);
  expect(one.instances).toBeUndefined();
  expect(both.instances?.find(({ architecture }) => architecture === 'arm64')?.image).toBe(one.image);
});

test('the way is told from the state of an architecture only in its own image', async () => {
  const { client, input, stock, digests } = await setUp();
  const froms = (['amd64', 'arm64'] as const).map((architecture) => ({
    config: input.rendered,
    base: formatReference({ ...stock, digest: digests[architecture] }),
    architecture,
  }));
  const { transitions } = await buildForArchitectures(client, { ...input, froms }, engine, signal);
  expect(transitions.map(({ actions }) => actions)).toEqual(['None', 'None']);
});

test.each(['one image', 'an index'])(
  'what is labelled again lies on what commands made of its base, for %s',
  async (what) => {
    const { client, input, stock, digests } = await setUp();
    const made = formatReference({ ...stock, repository: 'os/worker' });
    const digest = await pushBaseImage(client, `${made}:engine`, signal);
    const engineImage = `${made}@${digest}`;
    const instance = { architecture: 'amd64', image: engineImage, baseImage: engineImage, engineImage };
    const sameAs = aBuild('worker-first', 'rendered-worker-1', {
      status: what === 'an index' ? { instances: [instance] } : { engineImage },
    });
    const again = {
      ...input,
      architectures: ['amd64'],
      // By now the pool wants other commands, which are not to run.
      spec: { packages: ['strace'] },
      sameAs,
    };
    const result = await buildForArchitectures(client, again, engine, signal);
    expect(result).toMatchObject({ baseImage: engineImage, engineImage });
    const { config } = await describeImage(client, parseReference(result.image), 'amd64', signal);
    const stockImage = formatReference({ ...stock, digest: digests.amd64 });
    expect(config.config?.Labels?.[imageLabels.stockImage]).toBe(stockImage);
  },
);

test('what is labelled again without commands needs none, whatever the pool wants by now', async () => {
  const { client, input } = await setUp();
  const first = await buildForArchitectures(client, { ...input, architectures: ['amd64'] }, engine, signal);
  const sameAs = aBuild('worker-first', 'rendered-worker-1', { status: aSuccess('1') });
  const again = { ...input, architectures: ['amd64'], spec: { packages: ['strace'] }, sameAs };
  expect(await buildForArchitectures(client, again, engine, signal)).toMatchObject({
    way: 'Relabel',
    image: first.image,
  });
});

test('the index is signed as its images are', async () => {
  const { client, input } = await setUp();
  const key = newSigningKey();
  const seal = new Seal({ attest: false, key });
  const { image, instances = [] } = await buildForArchitectures(client, { ...input, seal }, engine, signal);
  for (const signed of [image, ...instances.map((instance) => instance.image)]) {
    const { digest, ...at } = parseReference(signed);
    if (digest === undefined) throw new Error(`${signed}: expected a digest`);
    expect(await isImageSignedBy(client, at, { digest, publicKey: key.publicKey }, signal)).toBe(true);
  }
});

test.each([
  [
    'an index without one of them',
    '1',
    ['amd64', 's390x'],
    'UnexpectedContent',
    /linux\/s390x.*linux\/amd64/,
  ],
  ['an image of one of them', 'amd64', ['amd64', 'arm64'], 'BaseImageArchitecture', /is for amd64/],
])('%s as the base fails for good, and no index appears', async (_name, tag, architectures, reason, why) => {
  const { client, input } = await setUp();
  const wrong = { ...input, baseImage: input.baseImage.replace(/1$/, tag), architectures };
  const build = buildForArchitectures(client, wrong, engine, signal);
  await expect(build).rejects.toMatchObject({
    reason,
    temporary: false,
    message: expect.stringMatching(why),
  });
  await expect(client.getManifest(parseReference(input.pushSpec), signal)).rejects.toMatchObject({
    status: 404,
  });
});

test('what no image can carry is refused before commands run', async () => {
  const { client, input } = await setUp();
  const users = [{ name: 'core', passwordHash: '$6$secret' }];
  const config = { ignition: { version: '3.5.0' }, passwd: { users } };
  const spec = { containerFile: [{ containerfileArch: 'NoArch' as const, content: 'RUN true' }] };
  const refused = { ...input, rendered: { ...input.rendered, spec: { config } }, spec };
  await expect(buildForArchitectures(client, refused, engine, signal)).rejects.toMatchObject({
    reason: 'NotLayerable',
    message: expect.stringMatching(/passwordHash of core: everyone who can pull the image could read it/),
  });
});
