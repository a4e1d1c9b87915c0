import type { RequestListener } from 'node:http';
import { describe, expect, onTestFinished, test } from 'vitest';
import { deadline } from '../test/fixtures/patience.ts';
import { pushBaseImage } from '../test/fixtures/registry/base-image.ts';
import { MemoryRegistry } from '../test/fixtures/registry/memory-registry.ts';
import { startReferrersRegistry } from '../test/fixtures/registry/referrers-registry.ts';
import { startScriptedRegistry } from '../test/fixtures/registry/scripted-registry.ts';
import { type Artifact, digestTag } from './artifact.ts';
import { digestOf } from './digest.ts';
import { parseReference } from './reference.ts';
import { attachArtifacts, deleteWithReferrers, listReferrers } from './referrers.ts';
import { createRegistryClient } from './registry/registry-client.ts';
import { ContentError } from './registry/registry-error.ts';

const signal = deadline(60_000);
const OCI_INDEX = 'application/vnd.oci.image.index.v1+json';
const artifact = (text: string): Artifact => ({
  artifactType: 'application/vnd.example+json',
  content: Buffer.from(JSON.stringify(text)),
  annotations: { about: text },
});

/** A registry that answers as a test says. */
async function scripted(answer: RequestListener) {
  const host = await startScriptedRegistry(answer);
  return { client: createRegistryClient({ plainHttp: new Set([host]) }), at: parseReference(`${host}/a`) };
}

/** An image in a registry without the referrers API. */
async function imageInMemory() {
  const registry = await MemoryRegistry.start();
  const client = createRegistryClient({ plainHttp: new Set([registry.host]) });
  const digest = await pushBaseImage(client, `${registry.host}/os/worker:1`, signal);
  const at = parseReference(`${registry.host}/os/worker`);
  const { bytes, mediaType } = await client.getManifest({ ...at, digest }, signal);
  const subject = { digest, mediaType, size: bytes.length };
  const list = digestTag(digest);
  return { registry, client, at, subject, list, manifests: registry.repository('os/worker').manifests };
}

describe('where the registry has no referrers API', () => {
  test('what is attached is listed under a tag, once', async () => {
    const { registry, client, at, subject, list } = await imageInMemory();
    const given = { subject, artifacts: [artifact('a'), artifact('b')] };
    const made = await attachArtifacts(client, at, given, signal);
    expect(await listReferrers(client, at, subject.digest, signal)).toEqual(made);
    const again = await registry.requestsOf(() => attachArtifacts(client, at, given, signal));
    expect(again).not.toContain(`PUT os/worker/manifests/${list}`);
    expect(await listReferrers(client, at, subject.digest, signal)).toEqual(made);
  });

  test.each([
    [7, 8],
    [8, 8],
  ])('a list that another client replaced %i times is written %i times', async (replaced, writes) => {
    const { registry, client, at, subject, list, manifests } = await imageInMemory();
    let puts = 0;
    registry.refuse = (line) => {
      if (line === `PUT os/worker/manifests/${list}`) puts += 1;
      if (line === `GET os/worker/manifests/${list}` && puts <= replaced) manifests.delete(list);
      return undefined;
    };
    const attached = attachArtifacts(client, at, { subject, artifacts: [artifact('a')] }, signal);
    if (replaced < 8) await attached;
    else {
      await expect(attached).rejects.toThrow(ContentError);
      await expect(attached).rejects.toThrow('replaced the list of referrers after each of 8 writes');
    }
    expect(puts).toBe(writes);
  });

  test('writers of one process wait for each other, and go on after one that failed', async () => {
    const { registry, client, at, subject, list } = await imageInMemory();
    let puts = 0;
    registry.refuse = (line) => {
      if (line !== `PUT os/worker/manifests/${list}`) return undefined;
      puts += 1;
      return puts === 1 ? { status: 403, code: 'DENIED' } : undefined;
    };
    const names = ['a', 'b', 'c'];
    const outcomes = await Promise.allSettled(
      names.map((name) => attachArtifacts(client, at, { subject, artifacts: [artifact(name)] }, signal)),
    );
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'fulfilled', 'rejected']);
    expect(await listReferrers(client, at, subject.digest, signal)).toHaveLength(2);
    expect(puts).toBe(3);
  });

  test('an image is deleted with its referrers, their list and all that lies beside it, itself at last', async () => {
    const { registry, client, at, subject, list, manifests } = await imageInMemory();
    await attachArtifacts(client, at, { subject, artifacts: [artifact('a')] }, signal);
    for (const kind of ['sig', 'att', 'sbom']) {
      const bytes = Buffer.from(JSON.stringify({ kind }));
      await client.putManifest({ ...at, tag: `${list}.${kind}` }, { mediaType: OCI_INDEX, bytes }, signal);
    }
    const requests = await registry.requestsOf(async () => {
      expect(await deleteWithReferrers(client, at, subject.digest, signal)).toBe(true);
    });
    expect([...manifests.keys()]).toEqual([]);
    expect(requests.filter((line) => line.startsWith('DELETE'))).toHaveLength(6);
    expect(requests.at(-1)).toBe(`DELETE os/worker/manifests/${subject.digest}`);
    expect(await deleteWithReferrers(client, at, subject.digest, signal)).toBe(false);
  });

  test('a list that can not be read is an error, and nothing is deleted', async () => {
    const { registry, client, at, subject, list } = await imageInMemory();
    registry.refuse = (line) => (line.endsWith(list) ? { status: 403, code: 'DENIED' } : undefined);
    const requests = await registry.requestsOf(() =>
      expect(deleteWithReferrers(client, at, subject.digest, signal)).rejects.toMatchObject({ status: 403 }),
    );
    expect(requests.filter((line) => line.startsWith('DELETE'))).toEqual([]);
  });
});

async function registryWithApi(given: { readonly endless?: boolean } = {}) {
  const registry = await startReferrersRegistry(given);
  onTestFinished(() => registry.stop());
  const client = createRegistryClient({ plainHttp: new Set([registry.host]) });
  return { client, at: parseReference(`${registry.host}/os/worker`), tags: registry.tags };
}

describe('where the registry has the referrers API', () => {
  const subject = { mediaType: 'm', digest: digestOf('image'), size: 5 };

  test('it keeps the list, of several pages, and no tag is written', async () => {
    const { client, at, tags } = await registryWithApi();
    const artifacts = ['a', 'b', 'c'].map(artifact);
    const made = await attachArtifacts(client, at, { subject, artifacts }, signal);
    const listed = await listReferrers(client, at, subject.digest, signal);
    expect(listed.map(({ digest }) => digest)).toEqual(made.map(({ digest }) => digest));
    expect(tags).toEqual([]);
  });

  test('pages that never end are given up', async () => {
    const { client, at } = await registryWithApi({ endless: true });
    await expect(listReferrers(client, at, subject.digest, signal)).rejects.toThrow(/pages of referrers/);
  });
});

describe('where a registry answers something else', () => {
  const list = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      manifests: [{ mediaType: 'm', digest: digestOf('statement'), size: 9 }],
    }),
  );

  test.each([
    [400, 'application/json'],
    [404, 'text/plain'],
    [405, 'text/plain'],
    [406, 'text/plain'],
    [200, 'text/html'],
  ])('%i of type %s is no referrers API, and the tag is read', async (status, type) => {
    const { client, at } = await scripted(({ url = '' }, response) => {
      if (url.includes('/referrers/')) response.writeHead(status, { 'content-type': type }).end('<html>');
      else response.writeHead(200, { 'content-type': OCI_INDEX }).end(list);
    });
    const listed = await listReferrers(client, at, digestOf('image'), signal);
    expect(listed.map(({ digest }) => digest)).toEqual([digestOf('statement')]);
  });

  test('the next page is asked of the registry itself, wherever a link points', async () => {
    const asked: string[] = [];
    const { client, at } = await scripted(({ url = '' }, response) => {
      asked.push(url);
      const link = asked.length === 1 ? { link: '<https://elsewhere.example/v2/b?page=2>; rel="next"' } : {};
      response.writeHead(200, { 'content-type': OCI_INDEX, ...link }).end(list);
    });
    await listReferrers(client, at, digestOf('image'), signal);
    expect(asked).toEqual([`/v2/a/referrers/${digestOf('image')}`, '/v2/b?page=2']);
  });

  test('odd values of an entry are passed over, the entry is not', async () => {
    const odd = { mediaType: 'm', digest: digestOf('odd'), size: 3, artifactType: 7, annotations: { a: 1 } };
    const { client, at } = await scripted((_request, response) =>
      response
        .writeHead(200, { 'content-type': OCI_INDEX })
        .end(JSON.stringify({ schemaVersion: 2, manifests: [odd] })),
    );
    expect(await listReferrers(client, at, digestOf('image'), signal)).toEqual([
      { ...odd, artifactType: '', annotations: {} },
    ]);
  });

  test('a list that is none is refused', async () => {
    const { client, at } = await scripted((_request, response) =>
      response.writeHead(200, { 'content-type': OCI_INDEX }).end('{"manifests":"many"}'),
    );
    await expect(listReferrers(client, at, digestOf('image'), signal)).rejects.toThrow(ContentError);
  });
});
