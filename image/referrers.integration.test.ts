/** Registries with and without the referrers API, on loopback: lists, writers at once, pruning. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { deadline } from '../test/fixtures/patience.ts';
import { startRegistryWithImage } from '../test/fixtures/registry/registry-with-image.ts';
import { type Artifact, digestTag } from './artifact.ts';
import { digestOf } from './digest.ts';
import { attachArtifacts, deleteWithReferrers, listReferrers, manifestAt } from './referrers.ts';
import { createRegistryClient } from './registry/registry-client.ts';
import { ContentError } from './registry/registry-error.ts';

const signal = deadline(300_000);
const OCI_INDEX = 'application/vnd.oci.image.index.v1+json';
const artifact = (text: string): Artifact => ({
  artifactType: 'application/vnd.example+json',
  content: Buffer.from(JSON.stringify(text)),
  annotations: { about: text },
});

/** An image in a real docker-registry, which has no referrers API. */
async function imageInRegistry() {
  const image = await startRegistryWithImage(signal);
  onTestFinished(() => image.stop());
  const { client, digest } = image;
  const { tag: _, ...at } = image.at;
  const newClient = () => createRegistryClient({ plainHttp: new Set([at.registry]) });
  const { bytes, mediaType } = await client.getManifest({ ...at, digest }, signal);
  return { client, newClient, at, subject: { digest, mediaType, size: bytes.length } };
}

describe('where the registry has no referrers API', () => {
  test('what is attached is listed, with its kind and annotations, and can be read', async () => {
    const { client, at, subject } = await imageInRegistry();
    const made = await attachArtifacts(
      client,
      at,
      { subject, artifacts: [artifact('a'), artifact('b')] },
      signal,
    );
    const listed = await listReferrers(client, at, subject.digest, signal);
    expect(listed).toEqual(made);
    expect(listed.map(({ artifactType, annotations }) => [artifactType, annotations['about']])).toEqual([
      ['application/vnd.example+json', 'a'],
      ['application/vnd.example+json', 'b'],
    ]);
    for (const { digest } of listed) {
      const manifest: unknown = JSON.parse(
        Buffer.from((await client.getManifest({ ...at, digest }, signal)).bytes).toString(),
      );
      expect(manifest).toMatchObject({ subject, artifactType: 'application/vnd.example+json' });
    }
  });

  test('attaching the same again changes nothing', async () => {
    const { client, at, subject } = await imageInRegistry();
    const given = { subject, artifacts: [artifact('a')] };
    await attachArtifacts(client, at, given, signal);
    const list = { ...at, tag: digestTag(subject.digest) };
    const before = await client.getManifest(list, signal);
    await attachArtifacts(client, at, given, signal);
    expect((await client.getManifest(list, signal)).digest).toBe(before.digest);
  });

  test('many at once lose none', async () => {
    const { newClient, at, subject } = await imageInRegistry();
    const names = Array.from({ length: 8 }, (_, index) => `n${index}`);
    await Promise.all(
      names.map((name) => attachArtifacts(newClient(), at, { subject, artifacts: [artifact(name)] }, signal)),
    );
    const listed = await listReferrers(newClient(), at, subject.digest, signal);
    expect(listed.map(({ annotations }) => annotations['about']).sort()).toEqual(names);
  });

  test('entries that another writer made stay as they are', async () => {
    const { client, at, subject } = await imageInRegistry();
    const [first] = await attachArtifacts(client, at, { subject, artifacts: [artifact('a')] }, signal);
    const theirs = {
      schemaVersion: 2,
      mediaType: OCI_INDEX,
      annotations: { of: 'theirs' },
      manifests: [{ ...first, platform: { os: 'unknown', architecture: 'unknown' } }],
    };
    const list = { ...at, tag: digestTag(subject.digest) };
    await client.putManifest(
      list,
      { mediaType: OCI_INDEX, bytes: Buffer.from(JSON.stringify(theirs)) },
      signal,
    );
    await attachArtifacts(client, at, { subject, artifacts: [artifact('b')] }, signal);
    const after = JSON.parse(Buffer.from((await client.getManifest(list, signal)).bytes).toString()) as {
      manifests: unknown[];
    };
    expect(after).toMatchObject({ annotations: { of: 'theirs' } });
    expect(after.manifests).toHaveLength(2);
    expect(after.manifests[0]).toMatchObject({ platform: { os: 'unknown' } });
  });

  test('a tag that holds an image is no list and stays', async () => {
    const { client, at, subject } = await imageInRegistry();
    const list = { ...at, tag: digestTag(subject.digest) };
    const { bytes, mediaType } = await client.getManifest({ ...at, digest: subject.digest }, signal);
    await client.putManifest(list, { mediaType, bytes }, signal);
    const given = { subject, artifacts: [artifact('a')] };
    await expect(attachArtifacts(client, at, given, signal)).rejects.toThrow(ContentError);
    expect((await client.getManifest(list, signal)).digest).toBe(subject.digest);
  });

  test('an image goes with everything that refers to it', async () => {
    const { client, at, subject } = await imageInRegistry();
    const made = await attachArtifacts(client, at, { subject, artifacts: [artifact('a')] }, signal);
    expect(await deleteWithReferrers(client, at, subject.digest, signal)).toBe(true);
    for (const { digest } of [subject, ...made]) {
      expect(await manifestAt(client, { ...at, digest }, signal)).toBeUndefined();
    }
    expect(await manifestAt(client, { ...at, tag: digestTag(subject.digest) }, signal)).toBeUndefined();
    expect(await deleteWithReferrers(client, at, subject.digest, signal)).toBe(false);
  });

  test('nothing refers to an image that is not there', async () => {
    const { client, at } = await imageInRegistry();
    expect(await listReferrers(client, at, digestOf('none'), signal)).toEqual([]);
  });
});
