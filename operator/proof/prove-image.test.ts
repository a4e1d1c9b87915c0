import { gunzipSync } from 'node:zlib';
import pino from 'pino';
import { expect, test } from 'vitest';
import { signingKeyName } from '../../api/image-signing.ts';
import type { MachineOSConfigSpec } from '../../api/machine-os-config.ts';
import type { PoolRevision } from '../../api/pool-revision.ts';
import { Seal } from '../../builder/attest/seal-image.ts';
import { buildForArchitectures, type PoolImageInput } from '../../builder/steps/build-image.ts';
import {
  defaultPolicySettings,
  effectivePolicies,
  policyDigest,
} from '../../disruption/effective-policies.ts';
import { describeImage } from '../../image/append.ts';
import { pushBaseRecord } from '../../image/base/base-record.ts';
import { BaseTrees } from '../../image/base/base-trees.ts';
import { writeLayer } from '../../image/layer/write-layer.ts';
import { parseReference } from '../../image/reference.ts';
import type { ImageClaim } from '../../rollout/pools/image-proof.ts';
import { MemoryCluster } from '../../test/fixtures/fleet/memory-cluster.ts';
import { aBuild, aConfigWithFile, aMachineOSConfig } from '../../test/fixtures/objects.ts';
import { deadline } from '../../test/fixtures/patience.ts';
import { newSigningKey } from '../../test/fixtures/registry/registry-with-image.ts';
import { startEngineWorld } from '../../test/fixtures/scripted-engine.ts';
import { imageProver } from './prove-image.ts';

/** Attacks by whoever has all that the builder has: test/attacks/stolen-builder.integration.test.ts. */

const signal = deadline(60_000);
const policies = effectivePolicies(undefined, defaultPolicySettings);
const inForce = { policies, policyDigest: policyDigest(policies) };

async function setUp(spec: Partial<MachineOSConfigSpec> = {}) {
  const world = await startEngineWorld();
  const { client, registry } = world;
  const key = newSigningKey();
  const stock = `${registry.host}/os/stock`;
  const { digest } = await describeImage(client, parseReference(`${stock}:1`), 'amd64', signal);
  const baseImage = `${stock}:1@${digest}`;
  const rendered = {
    ...aConfigWithFile,
    spec: { ...aConfigWithFile.spec, osImageURL: `${stock}@${digest}` },
  };
  const pushSpec = `${registry.host}/os/worker:x`;
  const input: PoolImageInput = {
    pool: 'worker',
    rendered,
    baseImage,
    pushSpec,
    ...inForce,
    froms: [],
    architectures: ['amd64'],
    version: '0',
    created: '1970-01-01T00:00:00Z',
    seal: new Seal({ attest: false, key }),
    spec,
    rebuild: '',
    readSecrets: () => Promise.resolve([]),
  };
  const build = async (more: Partial<PoolImageInput> = {}) => {
    const engine = world.newEngine();
    const content = Buffer.from('made by a command');
    const { bytes } = await writeLayer([
      { type: 'file', path: '/usr/made', mode: 0o644, uid: 0, gid: 0, content },
    ]);
    engine.layer = gunzipSync(bytes);
    const { parts } = world.setUp(engine);
    return buildForArchitectures(client, { ...input, ...more }, parts, signal);
  };
  const prover = () =>
    imageProver({
      client: new MemoryCluster().client(),
      namespace: 'shale-system',
      plainHttp: new Set([registry.host]),
      log: pino({ level: 'silent' }),
    });
  const made = aMachineOSConfig('worker');
  const claim = (image: string, more: Partial<ImageClaim> = {}): ImageClaim => {
    const built = aBuild('b', rendered.metadata.name, { policyDigest: inForce.policyDigest });
    return {
      build: { ...built, spec: { ...built.spec, baseImage }, status: { digestedImagePushSpec: image } },
      machineOSConfig: { ...made, spec: { ...made.spec, ...spec, renderedImagePushSpec: pushSpec } },
      rendered,
      inForce,
      configs: () => undefined,
      record: [],
      isRollback: false,
      signingKeys: { [signingKeyName(key.publicKey)]: key.publicKey },
      ...more,
    };
  };
  return { world, baseImage: `${stock}@${digest}`, rendered, build, prover, claim };
}

const aRevision = (spec: Partial<PoolRevision['spec']>): PoolRevision => ({
  apiVersion: 'shale.dev/v1',
  kind: 'PoolRevision',
  metadata: { name: 'r' },
  spec: {
    machineConfigPool: { name: 'worker' },
    revision: 1,
    machineConfig: { name: aConfigWithFile.metadata.name },
    ...spec,
  },
});

test('a new process reads no base again that the record names by digest, and one whose record is gone does', async () => {
  const { world, build, prover, claim } = await setUp();
  const { image, baseImage } = await build();
  const first = await prover()(claim(image), signal);
  if (first.kind !== 'proven') throw new Error(first.why);
  const at = parseReference(baseImage);
  const description = await describeImage(world.client, at, 'amd64', signal);
  const layer = description.manifest.layers[0]?.digest ?? '';
  const record = [aRevision({ baseRecords: [...first.baseRecords] })];
  const reads = (proving: Promise<unknown>) => world.registry.requestsOf(() => proving);
  const readsLayer = (requests: readonly string[]) => requests.some((line) => line.includes(layer));

  expect(readsLayer(await reads(prover()(claim(image, { record }), signal)))).toBe(true);
  const tree = await new BaseTrees().treeOf(world.client, { reference: at, description }, [], signal);
  const [chainId] = description.config.rootfs.diff_ids;
  if (chainId === undefined) throw new Error('no layer');
  const digest = await pushBaseRecord(world.client, parseReference(image), { chainId, tree }, signal);
  expect(first.baseRecords[0]?.image).toContain(digest);
  expect(readsLayer(await reads(prover()(claim(image, { record }), signal)))).toBe(false);
});

test('what a rollback labels again has to be on a base of the record', async () => {
  const { build, prover, claim, baseImage } = await setUp();
  const { image } = await build();
  const held = (record: readonly PoolRevision[]) =>
    prover()(claim(image, { isRollback: true, record }), signal);
  expect(await held([aRevision({ baseImage })])).toMatchObject({ kind: 'proven', baseImage });
  expect(await held([])).toMatchObject({
    why: expect.stringMatching(/the record of the pool has no image of/),
  });
});

test('an image for which no base is requested is refused, and one of other policies waits', async () => {
  const { build, prover, claim } = await setUp();
  const { image } = await build();
  expect(await prover()(claim(image, { rendered: aConfigWithFile }), signal)).toMatchObject({
    why: 'no base image is requested',
  });
  await expect(prover()(claim(image, { inForce: undefined }), signal)).rejects.toThrow('not recorded yet');
});

test('an image on what commands made is recorded with it, if the signed statement names what the pool requests', async () => {
  const { build, prover, claim, baseImage } = await setUp({ packages: ['htop'] });
  const { image, engineImage } = await build();
  expect(await prover()(claim(image), signal)).toMatchObject({ kind: 'proven', engineImages: [engineImage] });
  const record = [aRevision({ baseImage, engineImages: [engineImage ?? ''] })];
  expect(await prover()(claim(image, { isRollback: true, record }), signal)).toMatchObject({
    kind: 'proven',
  });
  // Without signatures its label has to suffice.
  expect(await prover()(claim(image, { signingKeys: {} }), signal)).toMatchObject({ kind: 'proven' });
});

test.each<[string, Partial<PoolImageInput>, RegExp]>([
  [
    'another Containerfile',
    { spec: { containerFile: [{ containerfileArch: 'NoArch', content: 'RUN evil' }] } },
    /was built with containerfile "RUN evil"; expected ""/,
  ],
  ['another pool', { pool: 'infra' }, /was built with pool "infra"; expected "worker"/],
  ['nothing', { spec: {} }, /is not in repository|doesn't begin with the layers|signed what/],
])('an image by %s is refused', async (_, made, why) => {
  const { build, prover, claim } = await setUp({ packages: ['htop'] });
  const { image } = await build({ spec: { packages: ['htop'] }, ...made });
  const outcome = await prover()(claim(image), signal).then(
    (proof) => (proof.kind === 'refused' ? proof.why : 'proven'),
    (error: Error) => error.message,
  );
  expect(outcome).toMatch(why);
});

test('without a statement by a key that nodes accept it waits', async () => {
  const { build, prover, claim } = await setUp({ packages: ['htop'] });
  const { image } = await build();
  const { publicKey } = newSigningKey();
  const proving = prover()(claim(image, { signingKeys: { [signingKeyName(publicKey)]: publicKey } }), signal);
  await expect(proving).rejects.toThrow(/no key that nodes accept has signed what/);
});
