import { expect, test } from 'vitest';
import { parseDigestedPullspec } from '../../api/references.ts';
import { digestTag } from '../../image/artifact.ts';
import { digestOf } from '../../image/digest.ts';
import { parseReference } from '../../image/reference.ts';
import { manifestAt } from '../../image/referrers.ts';
import { createRegistryClient } from '../../image/registry/registry-client.ts';
import { deadline } from '../../test/fixtures/patience.ts';
import { MemoryRegistry } from '../../test/fixtures/registry/memory-registry.ts';
import { recordingPushes } from './recorded-pushes.ts';

const signal = deadline(30_000);
const manifest = {
  mediaType: 'application/vnd.oci.image.index.v1+json',
  bytes: Buffer.from('{"manifests":[]}'),
};
const digest = digestOf(manifest.bytes);

async function setUp(recording: () => Promise<void> = async () => undefined) {
  const registry = await MemoryRegistry.start();
  const client = createRegistryClient({ plainHttp: new Set([registry.host]) });
  const repository = `${registry.host}/os/worker`;
  const records: string[] = [];
  const recorder = recordingPushes(client, `${repository}:worker-1`, async (image) => {
    await recording();
    records.push(`${image}, ${[...registry.repository('os/worker').manifests.keys()].length} manifests`);
  });
  const push = (name: string) => recorder.putManifest(parseReference(name), manifest, signal);
  return { registry, client, repository, records, push };
}

test('an image is recorded before it is pushed, whatever its tag', async () => {
  const { repository, records, push } = await setUp();
  await push(`${repository}:worker-1-arm64`);
  await push(`${repository}:engine-0123`);
  expect(records).toEqual([
    `${parseDigestedPullspec(`${repository}@${digest}`)}, 0 manifests`,
    expect.stringMatching(/@sha256:\S+, [1-9]/),
  ]);
});

test('one that can not be recorded is not pushed', async () => {
  const { client, repository, push } = await setUp(() => Promise.reject(new Error('no API server')));
  await expect(push(`${repository}:worker-1`)).rejects.toThrow('no API server');
  expect(await manifestAt(client, parseReference(`${repository}:worker-1`), signal)).toBeUndefined();
});

test('one whose tag the registry does not move gets another, by its digest', async () => {
  const { registry, client, repository, records, push } = await setUp();
  const at = parseReference(`${repository}:worker-1`);
  await client.putManifest(at, { ...manifest, bytes: Buffer.from('{"manifests":[] }') }, signal);
  registry.keepsTags = { status: 409, code: 'TAG_EXISTS' };
  expect(await push(`${repository}:worker-1`)).toBe(digest);
  const beside = parseReference(`${repository}:worker-1-${digest.slice(7, 19)}`);
  expect((await client.getManifest(beside, signal)).digest).toBe(digest);
  // A build that is requested again pushes the same.
  expect(await push(`${repository}:worker-1`)).toBe(digest);
  expect(records).toHaveLength(2);
  // Whoever verifies a signature looks at its tag alone.
  const signature = `${repository}:${digestTag(digest)}.sig`;
  await client.putManifest(
    parseReference(signature),
    { ...manifest, bytes: Buffer.from('{"manifests":[] }') },
    signal,
  );
  await expect(push(signature)).rejects.toThrow(`${digestTag(digest)}.sig names sha256:`);
});

test('a signature, which is deleted with its image, and another repository are not recorded', async () => {
  const { repository, records, push } = await setUp();
  await push(`${repository}:${digestTag(digest)}.sig`);
  await push(`${repository}-other:worker-1`);
  expect(records).toEqual([]);
});
