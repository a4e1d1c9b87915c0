import { expect, test } from 'vitest';
import { deadline } from '../test/fixtures/patience.ts';
import { startScriptedRegistry } from '../test/fixtures/registry/scripted-registry.ts';
import { describeImage } from './append.ts';
import { digestOf } from './digest.ts';
import { parseReference } from './reference.ts';
import { createRegistryClient } from './registry/registry-client.ts';

const signal = deadline(60_000);
const INDEX = 'application/vnd.oci.image.index.v1+json';
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const platform = { os: 'linux', architecture: 'amd64' };

/** @returns a registry whose tag `1` is an image within that many indexes. */
async function registryOf(indexes: number) {
  const contents = new Map<string, Buffer>();
  const add = (value: object, mediaType: string) => {
    const bytes = Buffer.from(JSON.stringify(value));
    contents.set(digestOf(bytes), bytes);
    return { mediaType, digest: digestOf(bytes), size: bytes.length };
  };
  const config = add({ ...platform, rootfs: { type: 'layers', diff_ids: [] } }, 'application/json');
  let top = add({ schemaVersion: 2, mediaType: MANIFEST, config, layers: [] }, MANIFEST);
  for (let depth = 0; depth < indexes; depth += 1) {
    top = add({ schemaVersion: 2, mediaType: INDEX, manifests: [{ ...top, platform }] }, INDEX);
  }
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

test.each([0, 1, 3])('an image within %i indexes is found', async (indexes) => {
  const { client, image } = await registryOf(indexes);
  expect((await describeImage(client, image, 'amd64', signal)).config.architecture).toBe('amd64');
});

test('indexes that are nested deeper are not followed', async () => {
  const { client, image } = await registryOf(4);
  await expect(describeImage(client, image, 'amd64', signal)).rejects.toThrow('nested more than 3 deep');
});
