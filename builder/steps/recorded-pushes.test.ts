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
  return { client, repository, records, push };
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

test('a signature, which is deleted with its image, and another repository are not recorded', async () => {
  const { repository, records, push } = await setUp();
  await push(`${repository}:${digestTag(digest)}.sig`);
  await push(`${repository}-other:worker-1`);
  expect(records).toEqual([]);
});
