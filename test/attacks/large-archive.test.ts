/**
 * A RUN line, which decides what is in the archive that the builder unpacks, wants the builder's disk, memory or time.
 */

import { mkdir, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pack } from 'tar-stream';
import { beforeEach, expect, test } from 'vitest';
import { removeLeftovers } from '../../builder/engine/work-dir.ts';
import { ArchiveTooLarge } from '../../image/archive/archive-limits.ts';
import { unpackImageArchive } from '../../image/archive/unpack-archive.ts';
import { digestOf } from '../../image/digest.ts';
import { readLayer } from '../../image/layer/read-layer.ts';
import { builderDeployment } from '../../opt-in/builder-deployment.ts';
import { deadline } from '../fixtures/patience.ts';
import { type EngineWorld, startEngineWorld } from '../fixtures/scripted-engine.ts';

const signal = deadline(60_000);
const GIB = 1024 ** 3;
const MIB = 1024 ** 2;
let world: EngineWorld;

beforeEach(async () => {
  world = await startEngineWorld();
});

/** @returns an archive whose layer says that it has as many bytes; whoever reads on finds out what it is. */
async function* hugeLayer(bytes: number): AsyncGenerator<Uint8Array> {
  const archive = pack();
  archive.entry({ name: 'layer.tar', size: bytes });
  const { value } = await (archive as unknown as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]().next();
  yield value as Uint8Array;
  for (let sent = 0; sent < 64; sent += 1) yield Buffer.alloc(MIB);
  throw new Error('64 MiB of it were read');
}

/** @returns an archive of the same small entry again and again. */
function manyEntries(count: number, name: (index: number) => string, content = '', linkname?: string) {
  const archive = pack();
  for (let index = 0; index < count; index += 1) {
    if (linkname === undefined) archive.entry({ name: name(index) }, content);
    else archive.entry({ name: name(index), type: 'symlink', linkname });
  }
  archive.finalize();
  return archive as unknown as AsyncIterable<Uint8Array>;
}

test('of more bytes than an image may have fails the build, which says what to do, and leaves nothing', async () => {
  const engine = world.newEngine();
  engine.save = async () => Readable.from(hugeLayer(GIB + 1));
  await expect(world.setUp(engine).run()).rejects.toMatchObject({
    reason: 'ArchiveTooLarge',
    temporary: false,
    message: expect.stringMatching(/has 1073741825 bytes .*expected at most 1073741824.*--engine-gibibytes/),
    logTail: ['working'],
  });
  expect(await readdir(world.workDir)).toEqual([]);
});

test('of more bytes than an image may have is refused where nobody set a limit, too', async () => {
  const options = { dir: world.workDir, known: new Set<never>() };
  await expect(unpackImageArchive(hugeLayer(33 * GIB), options, signal)).rejects.toThrow(ArchiveTooLarge);
});

test.each<[string, AsyncIterable<Uint8Array>]>([
  ['entries', manyEntries(10_001, (index) => `${index}`)],
  ['documents', manyEntries(9, (index) => `${index}.json`, ' '.repeat(8 * MIB))],
  ['names of links', manyEntries(70, (index) => `${index}`, '', 'x'.repeat(MIB))],
])('of too many %s is refused', async (_, archive) => {
  const options = { dir: world.workDir, known: new Set<never>() };
  await expect(unpackImageArchive(archive, options, signal)).rejects.toThrow(ArchiveTooLarge);
});

test('a layer of any image with more entries than anybody needs is refused', async () => {
  const archive = manyEntries(4, (index) => `${index}`);
  const layer = { mediaType: 'application/vnd.oci.image.layer.v1.tar', diffId: digestOf(Buffer.from('')) };
  const read = async () => {
    for await (const _ of readLayer(archive, layer, signal, { mostEntries: 3 }));
  };
  await expect(read()).rejects.toThrow('more than 3 entries');
});

test('what a builder that was killed had unpacked is deleted, and nothing else', async () => {
  await mkdir(path.join(world.workDir, 'shale-engine-abc'));
  await writeFile(path.join(world.workDir, 'shale-engine-abc/0.tar'), 'layer');
  await writeFile(path.join(world.workDir, 'of-others'), '');
  await removeLeftovers(world.workDir);
  expect(await readdir(world.workDir)).toEqual(['of-others']);
});

test("the builder's pod has no more of its node's disk than its archives may take", () => {
  const { containers, volumes } = builderDeployment('shale-system', 'shale:1', []).spec.template.spec;
  expect(volumes).toEqual([{ name: 'engine-work', emptyDir: { sizeLimit: '66Gi' } }]);
  expect(containers[0]?.resources).toMatchObject({ limits: { 'ephemeral-storage': '67Gi' } });
});
