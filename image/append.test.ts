import { expect, test } from 'vitest';
import { deadline } from '../test/fixtures/patience.ts';
import { startScriptedRegistry } from '../test/fixtures/registry/scripted-registry.ts';
import { appendLayer, describeImage, type ImageDescription } from './append.ts';
import { digestOf } from './digest.ts';
import { writeLayer } from './layer/write-layer.ts';
import { parseReference } from './reference.ts';
import { createRegistryClient } from './registry/registry-client.ts';

const signal = deadline(60_000);
const INDEX = 'application/vnd.oci.image.index.v1+json';
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const platform = { os: 'linux', architecture: 'amd64' };

type Descriptor = ImageDescription['manifest']['config'];

/** @param fill writes what the registry has. @returns a registry whose tag `1` is what it returns. */
async function registryWith(fill: (add: (value: object, mediaType: string) => Descriptor) => Descriptor) {
  const contents = new Map<string, Buffer>();
  const top = fill((value, mediaType) => {
    const bytes = Buffer.from(JSON.stringify(value));
    contents.set(digestOf(bytes), bytes);
    return { mediaType, digest: digestOf(bytes), size: bytes.length };
  });
  contents.set('1', contents.get(top.digest) ?? Buffer.alloc(0));
  const host = await startScriptedRegistry((request, response) => {
    const bytes = contents.get(request.url?.split('/').at(-1) ?? '');
    response.writeHead(bytes === undefined ? 404 : 200).end(bytes);
  });
  return {
    client: createRegistryClient({ plainHttp: new Set([host]) }),
    image: parseReference(`${host}/os:1`),
  };
}

/** @returns a registry whose tag `1` is an image within that many indexes. */
const registryOf = (indexes: number) =>
  registryWith((add) => {
    const config = add({ ...platform, rootfs: { type: 'layers', diff_ids: [] } }, 'application/json');
    let top = add({ schemaVersion: 2, mediaType: MANIFEST, config, layers: [] }, MANIFEST);
    for (let depth = 0; depth < indexes; depth += 1) {
      top = add({ schemaVersion: 2, mediaType: INDEX, manifests: [{ ...top, platform }] }, INDEX);
    }
    return top;
  });

/** How the entries of an index name their platforms: what an entry says, and what the image's configuration says. */
type Entries = readonly (readonly [named: object | null | undefined, config: object])[];
const of = (architecture: string, os = 'linux') => ({ os, architecture });
const signature = {};

/** @returns what the image of amd64 is whose entries are such. */
async function chosen(entries: Entries): Promise<unknown> {
  const { client, image } = await registryWith((add) => {
    const manifests = entries.map(([named, own], index) => {
      const rootfs = { type: 'layers', diff_ids: [] };
      const config = add(own === signature ? own : { ...own, rootfs, index }, 'application/json');
      const manifest = add({ schemaVersion: 2, mediaType: MANIFEST, config, layers: [] }, MANIFEST);
      return { ...manifest, ...(named === undefined ? {} : { platform: named }) };
    });
    return add({ schemaVersion: 2, mediaType: INDEX, manifests }, INDEX);
  });
  const { config } = await describeImage(client, image, 'amd64', signal);
  return config['index'];
}

test.each<[string, Entries, number]>([
  [
    'whose entry names it',
    [
      [of('arm64'), of('arm64')],
      [of('amd64'), of('amd64')],
    ],
    1,
  ],
  ['whose entry names no platform', [[undefined, of('amd64')]], 0],
  ['whose entry has null for a platform', [[null, of('amd64')]], 0],
  [
    'whose configuration has its architecture',
    [
      [undefined, of('arm64')],
      [undefined, of('amd64')],
    ],
    1,
  ],
  [
    'that is for Linux',
    [
      [undefined, of('amd64', 'windows')],
      [undefined, of('amd64')],
    ],
    1,
  ],
  [
    'beside what is no image',
    [
      [undefined, signature],
      [undefined, of('amd64')],
    ],
    1,
  ],
  [
    'that an entry names before one that none does',
    [
      [undefined, of('amd64')],
      [of('amd64'), of('amd64')],
    ],
    1,
  ],
])('of an index the image is chosen %s', async (_name, entries, index) => {
  expect(await chosen(entries)).toBe(index);
});

test('what an index has is told where it lacks an architecture', async () => {
  const entries: Entries = [
    [of('s390x'), of('s390x')],
    [undefined, of('arm64')],
  ];
  await expect(chosen(entries)).rejects.toThrow(
    /\/os: no image for linux\/amd64; the index has linux\/s390x, unknown$/,
  );
});

test.each([0, 1, 3])('an image within %i indexes is found', async (indexes) => {
  const { client, image } = await registryOf(indexes);
  expect((await describeImage(client, image, 'amd64', signal)).config.architecture).toBe('amd64');
});

test('indexes that are nested deeper are not followed', async () => {
  const { client, image } = await registryOf(4);
  await expect(describeImage(client, image, 'amd64', signal)).rejects.toThrow('nested more than 3 deep');
});

/** @returns an image of two layers with that history. */
const twoLayers = (history?: ImageDescription['config']['history']): ImageDescription => {
  const digest = digestOf(Buffer.from('layer'));
  const descriptor = { mediaType: 'application/octet-stream', digest, size: 5 };
  return {
    digest,
    mediaType: MANIFEST,
    manifestBytes: 5,
    manifest: { schemaVersion: 2, config: descriptor, layers: [descriptor, descriptor] },
    config: {
      ...platform,
      rootfs: { type: 'layers', diff_ids: [digest, digest] },
      ...(history === undefined ? {} : { history }),
    },
  };
};

// bootc and rpm-ostree refuse an image with fewer entries than layers.
test.each([
  ['no history', undefined, ['base image', 'base image', 'shale']],
  ['null for a history', null, ['base image', 'base image', 'shale']],
  ['a history that lacks a layer', [{ created_by: 'a' }], ['base image', 'base image', 'shale']],
  [
    'a history of each layer, and of what made none',
    [{ created_by: 'a' }, { created_by: 'b', empty_layer: true }, { created_by: 'c' }],
    ['a', 'b', 'c', 'shale'],
  ],
])('an image with %s has an entry for each layer afterwards', async (_name, history, expected) => {
  const options = { labels: {}, created: '2026-01-01T00:00:00Z', comment: 'shale' };
  const { config } = appendLayer(twoLayers(history), await writeLayer([]), options);
  const made = JSON.parse(Buffer.from(config).toString()) as { history: { created_by: string }[] };
  expect(made.history.map((entry) => entry.created_by)).toEqual(expected);
});
