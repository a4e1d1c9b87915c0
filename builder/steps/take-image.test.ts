import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineOSConfigSpec } from '../../api/machine-os-config.ts';
import { imageLabels, SHALE_VERSION } from '../../api/names.ts';
import type { Digest } from '../../api/references.ts';
import {
  defaultPolicySettings,
  effectivePolicies,
  policyDigest,
} from '../../disruption/effective-policies.ts';
import { describeImage } from '../../image/append.ts';
import { digestOf } from '../../image/digest.ts';
import { pushIndex } from '../../image/image-index.ts';
import { writeLayer } from '../../image/layer/write-layer.ts';
import { parseReference } from '../../image/reference.ts';
import { isImageSignedBy } from '../../image/signature/sign-image.ts';
import { aConfigWithFile, aMachineOSConfig } from '../../test/fixtures/objects.ts';
import { deadline } from '../../test/fixtures/patience.ts';
import { pushBaseImage } from '../../test/fixtures/registry/base-image.ts';
import { newSigningKey } from '../../test/fixtures/registry/registry-with-image.ts';
import { startEngineWorld } from '../../test/fixtures/scripted-engine.ts';
import { Seal } from '../attest/seal-image.ts';
import { BuildFailure } from '../build-failure.ts';
import { buildForArchitectures, type PoolImageInput } from './build-image.ts';
import { untraced } from './build-trace.ts';
import { type TakeInput, takeImage } from './take-image.ts';

/** A pool's first image that was made beforehand, and all that somebody else's may be instead. */

const signal = deadline(60_000);
const policies = effectivePolicies(undefined, defaultPolicySettings);
const inForce = { policies, policyDigest: policyDigest(policies) };

async function setUp(spec: Partial<MachineOSConfigSpec> = {}) {
  const world = await startEngineWorld();
  const { client, registry } = world;
  const key = newSigningKey();
  const seal = new Seal({ attest: false, key });
  const stock = `${registry.host}/os/stock`;
  const { digest } = await describeImage(client, parseReference(`${stock}:1`), 'amd64', signal);
  const baseImage = `${stock}:1@${digest}`;
  const rendered: MachineConfig = {
    ...aConfigWithFile,
    spec: { ...aConfigWithFile.spec, osImageURL: `${stock}:1` },
  };
  const repository = `${registry.host}/os/worker`;
  const input: PoolImageInput = {
    pool: 'worker',
    rendered,
    baseImage,
    pushSpec: `${repository}:outside`,
    ...inForce,
    froms: [],
    architectures: ['amd64'],
    version: SHALE_VERSION,
    created: '1970-01-01T00:00:00Z',
    spec,
    rebuild: '',
    seal,
    readSecrets: () => Promise.resolve([]),
  };
  const build = async (more: Partial<PoolImageInput> = {}) => {
    const engine = world.newEngine();
    const content = Buffer.from('made by a command');
    const made = { type: 'file', path: '/usr/made', mode: 0o644, uid: 0, gid: 0, content } as const;
    engine.layer = gunzipSync((await writeLayer([made])).bytes);
    const { parts } = world.setUp(engine);
    return (await buildForArchitectures(client, { ...input, ...more }, parts, signal)).image;
  };
  const made = aMachineOSConfig('worker');
  const machineOSConfig = {
    ...made,
    spec: { ...made.spec, ...spec, renderedImagePushSpec: `${repository}:latest` },
  };
  const take = (preBuiltImage: string, more: Partial<TakeInput> = {}) =>
    takeImage(
      client,
      {
        preBuiltImage,
        machineOSConfig,
        rendered,
        baseImage,
        pushSpec: `${repository}:worker-1`,
        inForce,
        configs: () => undefined,
        architectures: ['amd64'],
        seal,
        step: untraced,
        baseRecords: [],
        ...more,
      },
      signal,
    );
  /** Pushes an image again, with another configuration. */
  const reconfigured = async (image: string, change: (config: ConfigDocument) => unknown) => {
    const at = parseReference(image);
    const { bytes, mediaType } = await client.getManifest(at, signal);
    const manifest = JSON.parse(Buffer.from(bytes).toString('utf8'));
    const config = JSON.parse((await buffer(client.readBlob(at, manifest.config, signal))).toString('utf8'));
    const document = Buffer.from(JSON.stringify(change(config)));
    await client.putBlob(at, document, signal);
    const changed = { ...manifest.config, digest: digestOf(document), size: document.length };
    const body = Buffer.from(JSON.stringify({ ...manifest, config: changed }));
    const pushed = await client.putManifest(
      parseReference(`${repository}:changed`),
      { bytes: body, mediaType },
      signal,
    );
    return `${repository}@${pushed}`;
  };
  return { world, client, key, repository, stock, baseImage, rendered, build, take, reconfigured };
}

interface ConfigDocument {
  config: { Labels: Record<string, string>; Env?: string[] };
}

type World = Awaited<ReturnType<typeof setUp>>;

const failureOf = (taking: Promise<unknown>): Promise<unknown> =>
  taking.then(
    () => 'taken',
    (error: unknown) => error,
  );

/** The same rendered config by its name, with one more file, or another text of the one that it has. */
function withFile(rendered: MachineConfig, path: string, text: string): MachineConfig {
  const { config } = rendered.spec;
  const others = (config?.storage?.files ?? []).filter((file) => file.path !== path);
  const file = { path, mode: 0o644, contents: { source: `data:,${text}` } };
  return {
    ...rendered,
    spec: { ...rendered.spec, config: { ...config, storage: { files: [...others, file] } } },
  };
}

test('the image that a build would make is taken as it is, under the tag of the build, and signed', async () => {
  const { client, key, repository, build, take, baseImage } = await setUp();
  const image = await build({ seal: new Seal({ attest: false }) });
  const digest = parseReference(image).digest as Digest;
  const signedBy = { digest, publicKey: key.publicKey };
  expect(await isImageSignedBy(client, parseReference(repository), signedBy, signal)).toBe(false);
  const result = await take(image);
  expect(result).toMatchObject({
    image: `${repository}@${digest}`,
    baseImage: baseImage.replace(':1@', '@'),
    way: 'PreBuilt',
    transitions: [],
    bytes: { sent: 0, mounted: 0 },
    baseRecord: { image: expect.stringContaining(`${repository}@`) },
    contents: { summary: 'stock, packages unknown' },
  });
  expect((await client.getManifest(parseReference(`${repository}:worker-1`), signal)).digest).toBe(digest);
  expect(await isImageSignedBy(client, parseReference(repository), signedBy, signal)).toBe(true);
});

test('by tag and digest, as MCO writes it, it is the same image', async () => {
  const { build, take, repository } = await setUp();
  const { digest } = parseReference(await build());
  expect(await take(`${repository}:outside@${digest}`)).toMatchObject({ image: `${repository}@${digest}` });
});

test('what its label asks of nodes is computed again and recorded', async () => {
  const { build, take, rendered, baseImage } = await setUp();
  const before = {
    ...withFile(rendered, '/etc/motd', 'before'),
    metadata: { name: 'rendered-worker-0' },
  };
  const base = baseImage.replace(':1@', '@');
  const image = await build({ froms: [{ config: before, base }] });
  const configs = (name: string) => (name === 'rendered-worker-0' ? before : undefined);
  expect((await take(image, { configs })).transitions).toEqual([
    { from: expect.stringContaining('rendered-worker-0'), actions: 'Reboot' },
  ]);
  // Nobody can compute a transition from a config that is not in the cluster.
  expect(await failureOf(take(image))).toMatchObject({
    message: expect.stringContaining('rendered-worker-0, which does not exist'),
  });
});

test('a label by which nodes would do less than the policies require is refused', async () => {
  const { build, take, reconfigured, rendered, baseImage } = await setUp();
  const before = { ...withFile(rendered, '/etc/motd', 'before'), metadata: { name: 'rendered-worker-0' } };
  const configs = () => before;
  const image = await build({ froms: [{ config: before, base: baseImage.replace(':1@', '@') }] });
  expect(parseReference(await reconfigured(image, (same) => same)).digest).toBe(parseReference(image).digest);
  const lying = await reconfigured(image, (document) => {
    const label = JSON.parse(document.config.Labels[imageLabels.disruption] ?? '');
    label.transitions[0].actions = [];
    document.config.Labels[imageLabels.disruption] = JSON.stringify(label);
    return document;
  });
  const failure = (await failureOf(take(lying, { configs }))) as BuildFailure;
  expect(failure.reason).toBe('PreBuiltImageRefused');
  expect(failure.message).toMatch(/its label asks None of nodes with .*rendered-worker-0.*; expected Reboot/);
});

test.each<[string, RegExp, (world: World) => Promise<string>]>([
  [
    'one file changed',
    /\/etc\/motd is a file of mode 0644, .*; expected a file/,
    ({ build, rendered }) => build({ rendered: withFile(rendered, '/etc/motd', 'evil') }),
  ],
  [
    'one file more',
    /it has \/etc\/sudoers\.d\/evil, which/,
    ({ build, rendered }) => build({ rendered: withFile(rendered, '/etc/sudoers.d/evil', 'evil') }),
  ],
  [
    'another base',
    /its layer 1 is sha256:/,
    async ({ build, client, stock }) => {
      const other = await pushBaseImage(client, `${stock}:2`, signal, 'amd64', 'other');
      return build({ baseImage: `${stock}@${other}` });
    },
  ],
  [
    'another config',
    /machine-config\.json is a file/,
    ({ build, rendered }) => build({ rendered: { ...rendered, metadata: { name: 'rendered-worker-9' } } }),
  ],
  ['another pool', /pool is infra; expected worker/, ({ build }) => build({ pool: 'infra' })],
  [
    'other policies',
    /policy/,
    ({ build }) => build({ policyDigest: policyDigest({ ...policies, files: [] }) }),
  ],
  [
    'a label changed',
    /its label dev\.shale\.rendered-config is rendered-evil/,
    async ({ build, reconfigured }) =>
      reconfigured(await build(), (image) => {
        image.config.Labels[imageLabels.renderedConfig] = 'rendered-evil';
        return image;
      }),
  ],
  [
    'a label more',
    /its label evil is 1; expected none/,
    async ({ build, reconfigured }) =>
      reconfigured(await build(), (image) => {
        image.config.Labels['evil'] = '1';
        return image;
      }),
  ],
  [
    'a variable for its processes',
    /config\.Env of its configuration/,
    async ({ build, reconfigured }) =>
      reconfigured(await build(), (image) => {
        image.config.Env = ['LD_PRELOAD=/evil.so'];
        return image;
      }),
  ],
  [
    'the base itself',
    /it has 1 layers?; expected 2/,
    async ({ repository, world: { client } }) =>
      `${repository}@${await pushBaseImage(client, `${repository}:stock`, signal)}`,
  ],
  [
    'a name by tag',
    /expected an image by digest in the pool's repository/,
    async ({ build, repository }) => {
      await build();
      return `${repository}:outside`;
    },
  ],
  [
    'another repository',
    /expected an image by digest in the pool's repository/,
    ({ build, stock }) => build({ pushSpec: `${stock}:outside` }),
  ],
  ['no name at all', /expected an image by digest/, async () => 'worker'],
  [
    'a digest that is nowhere',
    /404|unknown/i,
    async ({ repository }) => `${repository}@sha256:${'0'.repeat(64)}`,
  ],
])('an image of %s is refused and gets no tag', async (_, why, make) => {
  const world = await setUp();
  const image = await make(world);
  const failure = await failureOf(world.take(image));
  expect(failure).toBeInstanceOf(BuildFailure);
  expect(failure).toMatchObject({ reason: 'PreBuiltImageRefused', temporary: false });
  expect((failure as Error).message).toMatch(why);
  const tags = await world.client.listTags(parseReference(world.repository), signal).catch(() => []);
  expect(tags).not.toContain('worker-1');
});

test('an image for other nodes than the pool has is refused', async () => {
  const { build, take } = await setUp();
  expect(await failureOf(take(await build(), { architectures: ['arm64'] }))).toMatchObject({
    message: expect.stringContaining("it is for amd64; expected arm64, as the pool's nodes are"),
  });
});

test('an index is taken with each of its images', async () => {
  const { world, client, repository, stock, build, take, key } = await setUp();
  const digests: Digest[] = [];
  for (const each of ['amd64', 'arm64'])
    digests.push(await pushBaseImage(world.client, `${stock}:two-${each}`, signal, each, `two-${each}`));
  const base = `${stock}:two@${await pushIndex(client, parseReference(`${stock}:two`), digests, signal)}`;
  const architectures = ['amd64', 'arm64'];
  const image = await build({ baseImage: base, architectures });
  const result = await take(image, { baseImage: base, architectures });
  expect(result).toMatchObject({ image, way: 'PreBuilt', baseImage: base.replace(':two@', '@') });
  expect(result.instances?.map(({ architecture }) => architecture)).toEqual(architectures);
  const previousBuild = { status: { instances: result.instances } } as never;
  const again = await take(image, { baseImage: base, architectures, previousBuild });
  expect(again.instances?.map(({ contents }) => contents?.previousImage)).toEqual(
    result.instances?.map((instance) => instance.image),
  );
  for (const each of [image, ...(result.instances ?? []).map((instance) => instance.image)]) {
    const digest = parseReference(each).digest as Digest;
    const signedBy = { digest, publicKey: key.publicKey };
    expect(await isImageSignedBy(client, parseReference(repository), signedBy, signal)).toBe(true);
  }
});

test('what commands made is taken where the key of the cluster signed what they were given, and nowhere else', async () => {
  const { build, take } = await setUp({ packages: ['htop'] });
  const image = await build();
  expect(await take(image)).toMatchObject({
    way: 'PreBuilt',
    engineImage: expect.stringContaining('@sha256:'),
  });
  expect(
    await failureOf(take(image, { seal: new Seal({ attest: false, key: newSigningKey() }) })),
  ).toMatchObject({
    reason: 'PreBuiltImageRefused',
    message: expect.stringContaining('no key that nodes accept has signed what'),
  });
  // Its label says of which inputs it is, as it would if somebody else had pushed it.
  expect(await failureOf(take(image, { seal: new Seal({ attest: false }) }))).toMatchObject({
    reason: 'PreBuiltImageRefused',
    message: expect.stringContaining('commands made its base'),
  });
});

test('a registry that is away is asked again', async () => {
  const { build, take, world } = await setUp();
  const image = await build();
  await world.registry.stop();
  expect(await failureOf(take(image))).toMatchObject({ reason: 'RegistryUnavailable', temporary: true });
});
