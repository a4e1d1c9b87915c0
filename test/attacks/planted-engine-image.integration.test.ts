/**
 * Somebody who may push to a pool's repository, and nothing else, wants the cluster's key to sign an image of theirs.
 */

import { expect, onTestFinished, test } from 'vitest';
import type { MachineOSBuildStatus } from '../../api/machine-os-build.ts';
import { imageLabels } from '../../api/names.ts';
import { type Digest, type DigestedPullspec, parseDigestedPullspec } from '../../api/references.ts';
import { Seal } from '../../builder/attest/seal-image.ts';
import {
  type EngineImageLookup,
  engineImageTarget,
  recordedEngineImages,
  signEngineImage,
} from '../../builder/engine/find-engine-image.ts';
import { Slots } from '../../builder/slots.ts';
import { type BuildInput, buildImage } from '../../builder/steps/build-image.ts';
import {
  defaultPolicySettings,
  effectivePolicies,
  policyDigest,
} from '../../disruption/effective-policies.ts';
import { digestTag } from '../../image/artifact.ts';
import { writeLayer } from '../../image/layer/write-layer.ts';
import { pushAppended } from '../../image/push-image.ts';
import { formatReference, parseReference } from '../../image/reference.ts';
import { manifestAt } from '../../image/referrers.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import type { SigningKey } from '../../image/signature/signing-key.ts';
import { engineInputsDigest, engineSpecOf } from '../../predict/image/engine-spec.ts';
import { givenEngine } from '../fixtures/given-engine.ts';
import { aBuild, condition } from '../fixtures/objects.ts';
import { deadline } from '../fixtures/patience.ts';
import { pushBaseImage } from '../fixtures/registry/base-image.ts';
import { newSigningKey, startRegistryWithImage } from '../fixtures/registry/registry-with-image.ts';

const signal = deadline(200_000);
const policies = effectivePolicies(undefined, defaultPolicySettings);

/** A pool whose image needs a command, and what anybody can find out about the engine's image for it. */
class Repository {
  readonly client: RegistryClient;
  readonly key = newSigningKey();
  readonly input: BuildInput;
  readonly lookup: Omit<EngineImageLookup, 'image'>;

  private constructor(client: RegistryClient, input: BuildInput, lookup: Omit<EngineImageLookup, 'image'>) {
    this.client = client;
    this.input = input;
    this.lookup = lookup;
  }

  static async start(): Promise<Repository> {
    const { client, at, stop } = await startRegistryWithImage(signal);
    onTestFinished(stop);
    const { registry } = at;
    await pushBaseImage(client, `${registry}/os/stock:1`, signal);
    const input: BuildInput = {
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
      architecture: 'amd64',
      version: '0',
      created: '1970-01-01T00:00:00Z',
      spec: { packages: ['htop'] },
      rebuild: '',
      readSecrets: () => Promise.resolve([]),
    };
    const engineSpec = engineSpecOf(input.spec, input.rendered, 'amd64');
    if (engineSpec === undefined) throw new Error('the image needs an engine');
    return new Repository(client, input, await engineImageTarget(client, { ...input, engineSpec }, signal));
  }

  /** Pushes an image under the tag and with the label of the engine's image. @returns its digest. */
  async plant(
    content: string,
    label = engineInputsDigest(this.lookup.inputs),
    { base, target } = this.lookup,
  ): Promise<Digest> {
    const layer = await writeLayer([
      { type: 'file', path: '/etc/planted', mode: 0o644, uid: 0, gid: 0, content: Buffer.from(content) },
    ]);
    const options = {
      labels: { [imageLabels.engineInputs]: label },
      created: '1970-01-01T00:00:00Z',
      comment: '',
    };
    const image = { base: base.reference, description: base.description, target, layer, options };
    return (await pushAppended(this.client, image, signal)).digest;
  }

  pullspec(digest: Digest, repository = this.lookup.target.repository): DigestedPullspec {
    return parseDigestedPullspec(
      formatReference({ registry: this.lookup.target.registry, repository, digest }),
    );
  }

  /** Builds with the cluster's key. @returns the result and whether the engine was asked. */
  async build(
    recorded: readonly DigestedPullspec[] = [],
    key: SigningKey | 'none' = this.key,
    input: Partial<BuildInput> = {},
  ) {
    let asked = false;
    const engine = {
      engines: givenEngine(() => {
        asked = true;
        throw new Error('the engine runs');
      }),
      workDir: '/tmp',
      slots: new Slots(1),
      limitMs: 60_000,
      limitBytes: 2 ** 30,
      built: new Set<DigestedPullspec>(),
      recorded,
      onLine: () => undefined,
    };
    const seal = new Seal({ attest: false, ...(key === 'none' ? {} : { key }) });
    const result = await buildImage(this.client, { ...this.input, ...input, seal }, engine, signal).then(
      (built) => built,
      () => undefined,
    );
    return { result, asked };
  }

  async isPushed(): Promise<boolean> {
    return (await manifestAt(this.client, parseReference(this.input.pushSpec), signal)) !== undefined;
  }
}

test('a planted tag and label lead to no signature: the engine runs', async () => {
  const repository = await Repository.start();
  await repository.plant('evil');
  expect(await repository.build()).toEqual({ result: undefined, asked: true });
  expect(await repository.isPushed()).toBe(false);
});

test('nor do they without a key', async () => {
  const repository = await Repository.start();
  await repository.plant('evil');
  expect(await repository.build([], 'none')).toEqual({ result: undefined, asked: true });
});

test('a statement that another key signed vouches for nothing', async () => {
  const repository = await Repository.start();
  const digest = await repository.plant('evil');
  await signEngineImage(repository.client, repository.lookup, { digest, key: newSigningKey() }, signal);
  expect(await repository.build()).toEqual({ result: undefined, asked: true });
});

test("the cluster's statement about one image vouches for no other", async () => {
  const repository = await Repository.start();
  const { client, key, lookup } = repository;
  const honest = await repository.plant('honest');
  await signEngineImage(client, lookup, { digest: honest, key }, signal);
  const evil = await repository.plant('evil');
  const { registry, repository: name } = lookup.target;
  const statement = await client.getManifest(
    { registry, repository: name, tag: `${digestTag(honest)}.att` },
    signal,
  );
  await client.putManifest({ registry, repository: name, tag: `${digestTag(evil)}.att` }, statement, signal);
  expect(await repository.build()).toEqual({ result: undefined, asked: true });
});

test("the cluster's statement about other inputs vouches for nothing", async () => {
  const repository = await Repository.start();
  const { client, key, lookup } = repository;
  const digest = await repository.plant('evil');
  const other = { ...lookup, inputs: { ...lookup.inputs, packages: ['other'] } };
  await signEngineImage(client, other, { digest, key }, signal);
  expect(await repository.build()).toEqual({ result: undefined, asked: true });
});

test("what commands made for one pool is no other pool's image, however equal the rest", async () => {
  const repository = await Repository.start();
  const { client, key, input } = repository;
  const engineSpec = engineSpecOf(input.spec, input.rendered, 'amd64');
  if (engineSpec === undefined) throw new Error('the image needs an engine');
  const lookup = await engineImageTarget(client, { ...input, engineSpec, pool: 'infra' }, signal);
  const digest = await repository.plant('of infra', engineInputsDigest(lookup.inputs), lookup);
  await signEngineImage(client, lookup, { digest, key }, signal);
  expect(await repository.build()).toEqual({ result: undefined, asked: true });
});

test('packages of an extensions image count by its digest, not by its tag', async () => {
  const repository = await Repository.start();
  const { client, key, input } = repository;
  const extensions = `${repository.lookup.target.registry}/os/extensions:1`;
  await pushBaseImage(client, extensions, signal, 'amd64', 'old');
  const rendered = {
    ...input.rendered,
    spec: { ...input.rendered.spec, extensions: ['usbguard'], baseOSExtensionsContainerImage: extensions },
  };
  const engineSpec = engineSpecOf(input.spec, rendered, 'amd64');
  if (engineSpec === undefined) throw new Error('the image needs an engine');
  const lookup = await engineImageTarget(client, { ...input, rendered, engineSpec }, signal);
  const digest = await repository.plant('by old packages', engineInputsDigest(lookup.inputs), lookup);
  await signEngineImage(client, lookup, { digest, key }, signal);
  expect(await repository.build([], key, { rendered })).toMatchObject({ asked: false });
  await pushBaseImage(client, extensions, signal, 'amd64', 'new');
  expect(await repository.build([], key, { rendered })).toMatchObject({ asked: true });
});

test("a signed image of the pool is no engine's image, although it inherits the label", async () => {
  const repository = await Repository.start();
  const digest = await repository.plant('honest');
  const { result } = await repository.build([repository.pullspec(digest)]);
  if (result === undefined) throw new Error('the recorded image was not used');
  const manifest = await repository.client.getManifest(parseReference(result.image), signal);
  await repository.client.putManifest(repository.lookup.target, manifest, signal);
  expect(await repository.build()).toEqual({ result: undefined, asked: true });
});

test('garbage in the place of the statement means that the engine runs', async () => {
  const repository = await Repository.start();
  const digest = await repository.plant('evil');
  const { registry, repository: name } = repository.lookup.target;
  const bytes = Buffer.from(JSON.stringify({ schemaVersion: 2, manifests: [] }));
  const mediaType = 'application/vnd.oci.image.index.v1+json';
  const at = { registry, repository: name, tag: `${digestTag(digest)}.att` };
  await repository.client.putManifest(at, { mediaType, bytes }, signal);
  expect(await repository.build()).toEqual({ result: undefined, asked: true });
});

test('what a build of this cluster recorded is used again, wherever its tag was moved', async () => {
  const repository = await Repository.start();
  const honest = await repository.plant('honest');
  await repository.plant('evil');
  const { result, asked } = await repository.build([repository.pullspec(honest)]);
  expect(asked).toBe(false);
  expect(result?.engineImage).toBe(repository.pullspec(honest));
});

test.each<[string, (repository: Repository, digest: Digest) => DigestedPullspec]>([
  ['in another repository', (repository, digest) => repository.pullspec(digest, 'os/other')],
  ['that is gone', (repository) => repository.pullspec(`sha256:${'0'.repeat(64)}` as Digest)],
])('an image %s is not used', async (_, recorded) => {
  const repository = await Repository.start();
  const digest = await repository.plant('evil');
  expect(await repository.build([recorded(repository, digest)])).toEqual({ result: undefined, asked: true });
});

test('a recorded image of other inputs is not used', async () => {
  const repository = await Repository.start();
  const digest = await repository.plant('honest', 'f'.repeat(64));
  expect(await repository.build([repository.pullspec(digest)])).toEqual({ result: undefined, asked: true });
});

test("what the cluster's key signed for these inputs is used again without a record", async () => {
  const repository = await Repository.start();
  const { client, key, lookup } = repository;
  const digest = await repository.plant('honest');
  await signEngineImage(client, lookup, { digest, key }, signal);
  const { result, asked } = await repository.build();
  expect(asked).toBe(false);
  expect(result?.engineImage).toBe(repository.pullspec(digest));
  expect((await repository.build([], newSigningKey())).asked).toBe(true);
});

test('only builds that succeeded are records, and the newest comes first', () => {
  const digest = (digit: string) => `r.example.com/os/worker@sha256:${digit.repeat(64)}`;
  const build = (type: string, buildEnd: string, status: Partial<MachineOSBuildStatus>) =>
    aBuild(`${type}-${buildEnd}`, 'rendered-worker-1', {
      status: { buildEnd, conditions: [condition(type)], ...status },
    });
  const instances = [
    { architecture: 'amd64', image: digest('0'), baseImage: '', engineImage: digest('d') },
    { architecture: 'arm64', image: digest('0'), baseImage: '' },
  ];
  const builds = [
    build('Succeeded', '2026-01-01T00:00:00Z', { engineImage: digest('a') }),
    build('Failed', '2026-01-04T00:00:00Z', { engineImage: digest('b') }),
    build('Building', '2026-01-05T00:00:00Z', { engineImage: digest('b') }),
    build('Succeeded', '2026-01-03T00:00:00Z', { instances }),
    build('Succeeded', '2026-01-02T00:00:00Z', { engineImage: digest('c') }),
    build('Succeeded', '2026-01-02T00:00:01Z', { engineImage: digest('a') }),
    build('Succeeded', '2026-01-02T00:00:02Z', {}),
  ];
  expect(recordedEngineImages(builds)).toEqual(['d', 'a', 'c'].map(digest));
});
