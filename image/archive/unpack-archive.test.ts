import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pack } from 'tar-stream';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Digest } from '../../api/references.ts';
import { digestOf } from '../digest.ts';
import { ContentError } from '../registry/registry-error.ts';
import { unpackImageArchive } from './unpack-archive.ts';
import { writeImageArchive } from './write-archive.ts';

const { signal } = new AbortController();

async function directory(): Promise<string> {
  const dir = await mkdtemp(path.join(tmpdir(), 'shale-archive-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  return dir;
}

const contents = ['first layer', 'second layer', ''].map((text) => Buffer.from(text));
const config = Buffer.from(
  JSON.stringify({ rootfs: { type: 'layers', diff_ids: contents.map((bytes) => digestOf(bytes)) } }),
);
const layers = contents.map((bytes) => ({
  diffId: digestOf(bytes),
  size: bytes.length,
  open: () => Readable.from([bytes]),
}));

interface Entry {
  readonly name: string;
  readonly content?: string;
  readonly linkTo?: string;
  readonly hardLinkTo?: string;
  readonly directory?: boolean;
}

function archiveOf(entries: readonly Entry[]): AsyncIterable<Uint8Array> {
  const archive = pack();
  for (const { name, content = '', linkTo, hardLinkTo, directory: isDirectory } of entries) {
    if (isDirectory === true) archive.entry({ name, type: 'directory' });
    else if (linkTo !== undefined) archive.entry({ name, type: 'symlink', linkname: linkTo });
    else if (hardLinkTo !== undefined) archive.entry({ name, type: 'link', linkname: hardLinkTo });
    else archive.entry({ name }, content);
  }
  archive.finalize();
  return archive as unknown as AsyncIterable<Uint8Array>;
}

const manifest = (...Layers: string[]) => ({
  name: 'manifest.json',
  content: JSON.stringify([{ Config: 'config.json', Layers }]),
});
const configOf = (...texts: string[]) => ({
  name: 'config.json',
  content: JSON.stringify({
    rootfs: { type: 'layers', diff_ids: texts.map((text) => digestOf(Buffer.from(text))) },
  }),
});

async function unpack(entries: readonly Entry[], known: readonly Digest[] = []) {
  const dir = await directory();
  const image = await unpackImageArchive(archiveOf(entries), { dir, known: new Set(known) }, signal);
  const texts = await Promise.all(
    image.layers.map(({ file }) => (file === undefined ? undefined : readFile(file, 'utf8'))),
  );
  return { image, texts, dir };
}

describe('an image archive', () => {
  test('is unpacked to what it was written from', async () => {
    const dir = await directory();
    const archive = writeImageArchive({ name: 'shale.local/base:1', config, layers });
    const image = await unpackImageArchive(archive, { dir, known: new Set() }, signal);
    expect(Buffer.from(image.config).equals(config)).toBe(true);
    expect(image.layers.map(({ diffId }) => diffId)).toEqual(contents.map((bytes) => digestOf(bytes)));
    for (const [index, { file = '' }] of image.layers.entries()) {
      expect((await readFile(file)).equals(contents[index] ?? Buffer.from('?'))).toBe(true);
    }
  });

  test('leaves no file of a layer that the caller has', async () => {
    const first = digestOf(Buffer.from('a'));
    const { image, texts, dir } = await unpack(
      [
        configOf('a', 'b'),
        { name: '1.tar', content: 'a' },
        { name: '2.tar', content: 'b' },
        manifest('1.tar', '2.tar'),
      ],
      [first],
    );
    expect(texts).toEqual([undefined, 'b']);
    expect(image.layers[0]?.diffId).toBe(first);
    expect(await readdir(dir)).toHaveLength(1);
  });

  test('may have its manifest first, and layers as links', async () => {
    const entries = [
      manifest('1/layer.tar', '2/layer.tar', '3/layer.tar'),
      { name: '1/layer.tar', content: 'a' },
      { name: '2/layer.tar', linkTo: '../1/layer.tar' },
      { name: '3/layer.tar', hardLinkTo: '1/layer.tar' },
      configOf('a', 'a', 'a'),
    ];
    expect((await unpack(entries)).texts).toEqual(['a', 'a', 'a']);
  });

  test('may have other things in it, which are passed over', async () => {
    const entries = [
      { name: 'layer/', directory: true },
      { name: 'layer/VERSION', content: '1.0' },
      { name: 'repositories', content: 'x'.repeat(5000) },
      { name: 'odd.json/', directory: true },
      { name: 'large.json', content: ' '.repeat(8 * 1024 * 1024 + 1) },
      { name: 'layer/layer.tar', content: 'a' },
      { name: 'directory.tar/', directory: true },
      configOf('a'),
      manifest('layer/layer.tar'),
    ];
    const { texts, dir } = await unpack(entries);
    expect(texts).toEqual(['a']);
    expect(await readdir(dir)).toHaveLength(1);
  });

  test('whose documents are larger than any can be is refused', async () => {
    const padded = { ...configOf('a'), content: configOf('a').content.padEnd(8 * 1024 * 1024 + 1) };
    const layer = { name: '1.tar', content: 'a' };
    await expect(unpack([padded, layer, manifest('1.tar')])).rejects.toThrow('has no config.json');
    const largest = { ...configOf('a'), content: configOf('a').content.padEnd(8 * 1024 * 1024) };
    expect((await unpack([largest, layer, manifest('1.tar')])).texts).toEqual(['a']);
  });

  test.each<[string, Entry[]]>([
    ['nothing', []],
    ['no manifest', [configOf('a'), { name: '1.tar', content: 'a' }]],
    ['a manifest that is no JSON', [{ name: 'manifest.json', content: '{' }]],
    [
      'a manifest of two images',
      [{ name: 'manifest.json', content: '[{"Config":"a","Layers":[]},{"Config":"a","Layers":[]}]' }],
    ],
    ['no configuration', [manifest('1.tar'), { name: '1.tar', content: 'a' }]],
    ['a layer that is missing', [configOf('a'), manifest('1.tar')]],
    [
      'a layer that is not the one of its configuration',
      [configOf('a'), { name: '1.tar', content: 'b' }, manifest('1.tar')],
    ],
    [
      'layers in another order than in its configuration',
      [
        configOf('b', 'a'),
        { name: '1.tar', content: 'a' },
        { name: '2.tar', content: 'b' },
        manifest('1.tar', '2.tar'),
      ],
    ],
    [
      'fewer layers than its configuration',
      [configOf('a', 'b'), { name: '1.tar', content: 'a' }, manifest('1.tar')],
    ],
    [
      'more layers than its configuration',
      [
        configOf('a'),
        { name: '1.tar', content: 'a' },
        { name: '2.tar', content: 'b' },
        manifest('1.tar', '2.tar'),
      ],
    ],
    [
      'a configuration without layers',
      [{ name: 'config.json', content: '{}' }, { name: '1.tar', content: 'a' }, manifest('1.tar')],
    ],
    [
      'more layers than any image',
      [
        configOf(...Array(1001).fill('a')),
        { name: '1.tar', content: 'a' },
        manifest(...Array(1001).fill('1.tar')),
      ],
    ],
    ['a link to nothing', [configOf('a'), { name: '1.tar', linkTo: 'gone' }, manifest('1.tar')]],
    ['a link to itself', [configOf('a'), { name: '1.tar', linkTo: '1.tar' }, manifest('1.tar')]],
  ])('with %s is refused', async (_, entries) => {
    await expect(unpack(entries)).rejects.toThrow(ContentError);
  });

  test('may be of a thousand layers', async () => {
    const [texts, names] = [Array(1000).fill('a'), Array(1000).fill('1.tar')] as [string[], string[]];
    const { image } = await unpack([configOf(...texts), { name: '1.tar', content: 'a' }, manifest(...names)]);
    expect(image.layers).toHaveLength(1000);
  });

  test('is not read on once the signal is aborted', async () => {
    const dir = await directory();
    const aborted = AbortSignal.abort(new Error('enough'));
    const entries = [configOf('a'), { name: '1.tar', content: 'a' }, manifest('1.tar')];
    await expect(unpackImageArchive(archiveOf(entries), { dir, known: new Set() }, aborted)).rejects.toThrow(
      'enough',
    );
  });

  test('that ends too soon is an error', async () => {
    const dir = await directory();
    async function* broken() {
      yield Buffer.alloc(512, 'x');
      throw new Error('connection lost');
    }
    await expect(unpackImageArchive(broken(), { dir, known: new Set() }, signal)).rejects.toThrow();
  });
});
