import { describe, expect, test } from 'vitest';
import { deadline } from '../test/fixtures/patience.ts';
import { MemoryRegistry } from '../test/fixtures/registry/memory-registry.ts';
import { digestTag } from './artifact.ts';
import {
  type AttachedLayer,
  type AttachedPlace,
  annotationOf,
  pushAttached,
  readAttached,
  readContent,
} from './attached-layers.ts';
import { digestOf } from './digest.ts';
import { parseReference } from './reference.ts';
import { createRegistryClient } from './registry/registry-client.ts';
import { ContentError } from './registry/registry-error.ts';

const signal = deadline(60_000);
const MEDIA_TYPE = 'application/vnd.example';

async function setUp() {
  const registry = await MemoryRegistry.start();
  const client = createRegistryClient({ plainHttp: new Set([registry.host]) });
  const at = parseReference(`${registry.host}/os/worker`);
  const place: AttachedPlace = { at, digest: digestOf('image'), kind: 'sig' };
  const add = (before: readonly AttachedLayer[], text: string, annotations = {}) =>
    pushAttached(
      client,
      place,
      { before, content: Buffer.from(text), mediaType: MEDIA_TYPE, annotations },
      signal,
    );
  return { registry, client, place, add, read: () => readAttached(client, place, signal) };
}

describe('what lies beside an image', () => {
  test('is nothing where the registry has no such tag', async () => {
    expect(await (await setUp()).read()).toEqual([]);
  });

  test('keeps its order, and what was there', async () => {
    const { add, read } = await setUp();
    await add([], 'one', { of: '1' });
    await add(await read(), 'two');
    expect(await read()).toEqual([
      { mediaType: MEDIA_TYPE, digest: digestOf('one'), size: 3, annotations: { of: '1' } },
      { mediaType: MEDIA_TYPE, digest: digestOf('two'), size: 3, annotations: {} },
    ]);
  });

  test('is refused where the tag holds an index', async () => {
    const { client, place, read } = await setUp();
    const mediaType = 'application/vnd.oci.image.index.v1+json';
    const bytes = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType, manifests: [] }));
    const tag = `${digestTag(place.digest)}.sig`;
    await client.putManifest({ ...place.at, tag }, { mediaType, bytes }, signal);
    await expect(read()).rejects.toThrow(ContentError);
    await expect(read()).rejects.toThrow(
      `${tag}: found an image index, expected an image that holds signatures`,
    );
  });

  test.each([
    [100, undefined],
    [101, 'has 101 signatures, more than the limit of 100'],
  ])('may be %i layers: %s', async (count, refused) => {
    const { add, read } = await setUp();
    await add([], 'x');
    const [layer] = await read();
    if (layer === undefined) throw new Error('expected a layer');
    await add(
      Array.from({ length: count - 1 }, () => layer),
      'x',
    );
    if (refused === undefined) expect(await read()).toHaveLength(count);
    else await expect(read()).rejects.toThrow(refused);
  });
});

describe('the content of a layer', () => {
  test.each<[string, string, number, string | undefined]>([
    ['of the right type, and as large as allowed', MEDIA_TYPE, 7, 'content'],
    ['of another type', 'text/plain', 7, undefined],
    ['that is too large', MEDIA_TYPE, 6, undefined],
  ])('%s', async (_what, mediaType, maxBytes, expected) => {
    const { registry, client, place, add, read } = await setUp();
    await add([], 'content');
    const [layer] = await read();
    if (layer === undefined) throw new Error('expected a layer');
    const requests = await registry.requestsOf(async () => {
      const content = await readContent(client, place, { layer, mediaType, maxBytes }, signal);
      expect(content && Buffer.from(content).toString()).toBe(expected);
    });
    expect(requests).toHaveLength(expected === undefined ? 0 : 1);
  });
});

test.each<[unknown, string | undefined]>([
  [{ of: 'me' }, 'me'],
  [{ of: 7 }, undefined],
  [{}, undefined],
  [undefined, undefined],
])('of annotations %j the value is %j', (annotations, value) => {
  const layer = { mediaType: MEDIA_TYPE, digest: digestOf('a'), size: 1, annotations } as AttachedLayer;
  expect(annotationOf(layer, 'of')).toBe(value);
});
