/**
 * A pool with nodes of two architectures: each image of its index is computed again, on the base of its architecture.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pino from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { Digest } from '../../api/references.ts';
import { type AppendInput, appendBuild } from '../../builder/steps/append-build.ts';
import {
  defaultPolicySettings,
  effectivePolicies,
  policyDigest,
} from '../../disruption/effective-policies.ts';
import { digestOf } from '../../image/digest.ts';
import { pushIndex } from '../../image/image-index.ts';
import { parseReference } from '../../image/reference.ts';
import { createRegistryClient, type RegistryClient } from '../../image/registry/registry-client.ts';
import type { ImageClaim, ImageProof } from '../../rollout/pools/image-proof.ts';
import { MemoryCluster } from '../../test/fixtures/fleet/memory-cluster.ts';
import { aBuild, aConfigWithFile, aMachineOSConfig } from '../../test/fixtures/objects.ts';
import { deadline, patience } from '../../test/fixtures/patience.ts';
import { pushBaseImage } from '../../test/fixtures/registry/base-image.ts';
import { type DockerRegistry, startDockerRegistry } from '../../workshop/sandbox/docker-registry.ts';
import { imageProver } from './prove-image.ts';

const signal = deadline(120_000);
const policies = effectivePolicies(undefined, defaultPolicySettings);
const inForce = { policies, policyDigest: policyDigest(policies) };
const INDEX = 'application/vnd.oci.image.index.v1+json';

let dir: string;
let registry: DockerRegistry;
let client: RegistryClient;
/** The index of the base image, and one that nobody requested. */
let base: string;
let otherBase: string;
let rendered: MachineConfig;

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'shale-index-'));
  registry = await startDockerRegistry({ dir });
  client = createRegistryClient({ plainHttp: new Set([registry.host]) });
  base = await pushBase('stock');
  otherBase = await pushBase('other');
  rendered = { ...aConfigWithFile, spec: { ...aConfigWithFile.spec, osImageURL: base } };
}, patience(60_000));
afterAll(async () => {
  await registry.stop();
  await rm(dir, { recursive: true });
});

/** Each architecture has a layer of its own. @returns the index, by digest. */
async function pushBase(id: string): Promise<string> {
  const repository = `${registry.host}/os/stock`;
  const images: Digest[] = [];
  for (const architecture of ['amd64', 'arm64'])
    images.push(
      await pushBaseImage(
        client,
        `${repository}:${id}-${architecture}`,
        signal,
        architecture,
        `${id}-${architecture}`,
      ),
    );
  const digest = await pushIndex(client, parseReference(`${repository}:${id}`), images, signal);
  return `${repository}@${digest}`;
}

interface Made {
  readonly architecture: string;
  /** Default: what the pool requests. */
  readonly config?: MachineConfig;
  readonly from?: string;
}

const pushSpec = () => `${registry.host}/os/worker:x`;

/** @returns the image that a builder makes of this. */
async function imageOf({ architecture, config = rendered, from = base }: Made): Promise<Digest> {
  const input: AppendInput = {
    pool: 'worker',
    rendered: config,
    baseImage: from,
    pushSpec: pushSpec(),
    ...inForce,
    froms: [],
    architecture,
    version: '0',
    created: '1970-01-01T00:00:00Z',
  };
  const { image } = await appendBuild(client, input, signal);
  return parseReference(image).digest as Digest;
}

async function proofOf(digest: Digest): Promise<ImageProof> {
  const prove = imageProver({
    client: new MemoryCluster().client(),
    namespace: 'shale-system',
    plainHttp: new Set([registry.host]),
    log: pino({ level: 'silent' }),
  });
  const built = aBuild('b', rendered.metadata.name, { policyDigest: inForce.policyDigest });
  const made = aMachineOSConfig('worker');
  const claim: ImageClaim = {
    build: {
      ...built,
      spec: { ...built.spec, baseImage: base },
      status: { digestedImagePushSpec: `${registry.host}/os/worker@${digest}` },
    },
    machineOSConfig: { ...made, spec: { ...made.spec, renderedImagePushSpec: pushSpec() } },
    rendered,
    inForce,
    configs: () => undefined,
    record: [],
    isRollback: false,
    signingKeys: {},
  };
  return prove(claim, signal);
}

const indexOf = (...images: readonly Digest[]) =>
  pushIndex(client, parseReference(pushSpec()), images, signal);

/** The same rendered config by its name, with one more file. */
function planted(): MachineConfig {
  const file = { path: '/etc/sudoers.d/evil', mode: 0o440, contents: { source: 'data:,evil' } };
  const { config } = aConfigWithFile.spec;
  const storage = { ...config?.storage, files: [...(config?.storage?.files ?? []), file] };
  return { ...rendered, spec: { ...rendered.spec, config: { ...config, storage } } };
}

test('the index of what was requested is proven, with the record of the base of each architecture', async () => {
  const digest = await indexOf(
    await imageOf({ architecture: 'amd64' }),
    await imageOf({ architecture: 'arm64' }),
  );
  const proof = await proofOf(digest);
  expect(proof).toMatchObject({ kind: 'proven', baseImage: base, engineImages: [] });
  const records = proof.kind === 'proven' ? proof.baseRecords : [];
  expect(new Set(records.map(({ chainID }) => chainID)).size).toBe(2);
});

test.each(['amd64', 'arm64'])('an image that was planted for %s alone is refused', async (architecture) => {
  const honest = architecture === 'amd64' ? 'arm64' : 'amd64';
  const digest = await indexOf(
    await imageOf({ architecture: honest }),
    await imageOf({ architecture, config: planted() }),
  );
  expect(await proofOf(digest)).toMatchObject({
    kind: 'refused',
    why: expect.stringContaining('/etc/sudoers.d/evil'),
  });
});

test('an image on a base that nobody requested is refused, if it is one of two', async () => {
  const digest = await indexOf(
    await imageOf({ architecture: 'amd64' }),
    await imageOf({ architecture: 'arm64', from: otherBase }),
  );
  expect(await proofOf(digest)).toMatchObject({ kind: 'refused' });
});

test('an index that says of the images another architecture than they are of is refused', async () => {
  const images = [await imageOf({ architecture: 'amd64' }), await imageOf({ architecture: 'arm64' })];
  const entries = await Promise.all(
    images.map(async (digest, i) => {
      const at = { ...parseReference(`${registry.host}/os/worker`), digest };
      const { mediaType, bytes } = await client.getManifest(at, signal);
      const platform = { architecture: i === 0 ? 'arm64' : 'amd64', os: 'linux' };
      return { mediaType, digest, size: bytes.length, platform };
    }),
  );
  const bytes = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: INDEX, manifests: entries }));
  const digest = await client.putManifest(parseReference(pushSpec()), { mediaType: INDEX, bytes }, signal);
  expect(digest).toBe(digestOf(bytes));
  expect(await proofOf(digest)).toMatchObject({
    kind: 'refused',
    why: 'its index has another form than expected of its images',
  });
});

test('an index without images is refused', async () => {
  const bytes = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: INDEX, manifests: [] }));
  const digest = await client.putManifest(parseReference(pushSpec()), { mediaType: INDEX, bytes }, signal);
  expect(await proofOf(digest)).toMatchObject({ why: 'its index has 0 images; expected 1 to 16' });
});
