import { once } from 'node:events';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { extract } from 'tar-stream';
import { describe, expect, test, vi } from 'vitest';
import { patience } from '../../test/fixtures/patience.ts';
import { digestOf } from '../digest.ts';
import { writeImageArchive } from './write-archive.ts';

const [a, b] = ['first layer', 'second layer'].map((text) => ({
  diffId: digestOf(text),
  size: text.length,
  open: () => Readable.from([Buffer.from(text)]),
}));
if (a === undefined || b === undefined) throw new Error('expected two layers');
const layers = [a, b, a];
const config = Buffer.from(
  JSON.stringify({ rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) } }),
);

describe('an image archive', () => {
  test('is written with each layer once, however often it is named, and is one image of that name', async () => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of writeImageArchive({ name: 'shale.local/base:1', config, layers }))
      chunks.push(chunk);
    const reader = extract();
    const names: string[] = [];
    const documents: unknown[] = [];
    reader.on('entry', ({ name }, stream, next) => {
      names.push(name);
      buffer(stream).then((bytes) => {
        if (name === 'manifest.json') documents.push(JSON.parse(bytes.toString()));
        next();
      }, next);
    });
    reader.end(Buffer.concat(chunks));
    await once(reader, 'finish');
    const Layers = layers.map(({ diffId }) => `${diffId.slice('sha256:'.length)}.tar`);
    const Config = `${digestOf(config).slice('sha256:'.length)}.json`;
    expect(names).toEqual(['manifest.json', Config, ...Layers.slice(0, 2)]);
    expect(documents).toEqual([[{ Config, RepoTags: ['shale.local/base:1'], Layers }]]);
  });

  test('is not written to its end once a layer can not be opened, or once nobody reads it', async () => {
    const broken = {
      diffId: digestOf('x'),
      size: 1,
      open: () => {
        throw new Error('no layer');
      },
    };
    const read = async () => {
      for await (const chunk of writeImageArchive({ name: 'a:1', config, layers: [broken] })) void chunk;
    };
    await expect(read()).rejects.toThrow('no layer');
    let closed = false;
    async function* endless() {
      try {
        for (;;) yield Buffer.alloc(64 * 1024);
      } finally {
        closed = true;
      }
    }
    const large = { diffId: digestOf('y'), size: 1024 ** 3, open: endless };
    for await (const chunk of writeImageArchive({ name: 'a:1', config, layers: [large] }))
      if (chunk.length > 10_000) break;
    await vi.waitFor(() => expect(closed).toBe(true), { timeout: patience(5_000) });
  });
});
