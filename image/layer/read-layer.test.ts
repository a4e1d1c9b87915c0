import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { buffer } from 'node:stream/consumers';
import { constants, gzipSync, zstdCompressSync } from 'node:zlib';
import { type Header, pack } from 'tar-stream';
import { describe, expect, test } from 'vitest';
import { digestOf } from '../digest.ts';
import type { LayerItem } from './entry.ts';
import { LayerError, readLayer } from './read-layer.ts';
import { writeLayer } from './write-layer.ts';

type Headers = Partial<Header> & Pick<Header, 'name'>;

const GZIP = 'application/vnd.oci.image.layer.v1.tar+gzip';
const ZSTD = 'application/vnd.oci.image.layer.v1.tar+zstd';
const TAR = 'application/vnd.oci.image.layer.v1.tar';
const live = new AbortController().signal;

async function tar(...entries: readonly (readonly [Headers, string?])[]): Promise<Buffer> {
  const archive = pack();
  for (const [header, content] of entries) archive.entry(header, content ?? '');
  archive.finalize();
  return buffer(archive);
}

/** Writes the checksum of an archive's first header again (POSIX ustar): its own field counts as spaces. */
function resum(archive: Buffer): void {
  archive.fill(' ', 148, 156, 'latin1');
  const sum = archive.subarray(0, 512).reduce((all, byte) => all + byte, 0);
  archive.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
}

async function* inChunks(bytes: Uint8Array, size = 1000): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

type Seen = Exclude<LayerItem, { type: 'file' }> | { type: 'file'; path: string; mode: number; text: string };

async function read(bytes: Uint8Array, mediaType = TAR, diffId = digestOf(bytes)): Promise<readonly Seen[]> {
  const seen: Seen[] = [];
  for await (const item of readLayer(inChunks(bytes), { mediaType, diffId }, live)) {
    if (item.type !== 'file') seen.push(item);
    else {
      const chunks: Uint8Array[] = [];
      for await (const chunk of item.content as AsyncIterable<Uint8Array>) chunks.push(chunk);
      seen.push({ type: 'file', path: item.path, mode: item.mode, text: Buffer.concat(chunks).toString() });
    }
  }
  return seen;
}

describe('a layer', () => {
  test('is read as it was written', async () => {
    const owner = { uid: 0, gid: 0 };
    const layer = await writeLayer([
      { type: 'file', path: '/etc/a', mode: 0o640, uid: 1, gid: 2, content: Buffer.from('text') },
      { type: 'symlink', path: '/etc/l', target: 'a', ...owner },
      { type: 'hardlink', path: '/etc/z', target: '/etc/a' },
    ]);
    expect(await read(layer.bytes, GZIP, layer.diffId)).toEqual([
      { type: 'directory', path: 'etc', mode: 0o755, uid: 0, gid: 0 },
      { type: 'file', path: 'etc/a', mode: 0o640, text: 'text' },
      { type: 'symlink', path: 'etc/l', target: 'a', ...owner },
      { type: 'hardlink', path: 'etc/z', target: 'etc/a' },
    ]);
  });

  test.each([
    ['gzip', GZIP, gzipSync],
    ['zstd', ZSTD, zstdCompressSync],
    ['Docker gzip', 'application/vnd.docker.image.rootfs.diff.tar.gzip', gzipSync],
    ['Docker zstd', 'application/vnd.docker.image.rootfs.diff.tar.zstd', zstdCompressSync],
  ])('is read from %s', async (_, mediaType, compress) => {
    const plain = await tar([{ name: './a' }, 'x']);
    expect(await read(compress(plain), mediaType, digestOf(plain))).toEqual([
      { type: 'file', path: 'a', mode: 0o644, text: 'x' },
    ]);
  });

  describe('of several frames', () => {
    /** RFC 8878, 3.1.2: content of other programs, such as the table of contents of zstd:chunked. */
    const skippable = (length: number) => {
      const frame = Buffer.alloc(8 + length, 7);
      frame.writeUInt32LE(0x184d2a5e, 0);
      frame.writeUInt32LE(length, 4);
      return frame;
    };
    const zstd = (bytes: Uint8Array, checksum = 0) =>
      zstdCompressSync(bytes, { params: { [constants.ZSTD_c_checksumFlag]: checksum } });
    /** With a frame for each part, as parallel compressors and zstd:chunked make them. */
    const parts = (bytes: Uint8Array, size: number) =>
      Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
        zstd(bytes.subarray(at * size, (at + 1) * size), at % 2),
      );

    test.each<[string, (bytes: Buffer) => readonly Uint8Array[]]>([
      ['one, of several blocks', (bytes) => [zstd(bytes, 1)]],
      ['small ones', (bytes) => parts(bytes, 5_000)],
      ['large ones', (bytes) => parts(bytes, 150_000)],
      ['one without content', (bytes) => [zstd(bytes), zstd(Buffer.alloc(0))]],
      ['skippable ones behind', (bytes) => [...parts(bytes, 9_000), skippable(5_000), skippable(0)]],
      ['a skippable one in front', (bytes) => [skippable(40), zstd(bytes)]],
      ['skippable ones between', (bytes) => parts(bytes, 9_000).flatMap((part) => [part, skippable(3)])],
    ])('is read to its end: %s', async (_what, framed) => {
      const text = Array.from({ length: 22_000 }, (_, index) => `${index * 7919} `).join('');
      const bytes = await tar([{ name: 'a' }, text], [{ name: 'b' }, 'end']);
      const blob = Buffer.concat(framed(bytes));
      for (const size of [13, 997, blob.length]) {
        const seen: string[] = [];
        const layer = { mediaType: ZSTD, diffId: digestOf(bytes) };
        for await (const item of readLayer(inChunks(blob, size), layer, live)) seen.push(item.path);
        expect(seen).toEqual(['a', 'b']);
      }
    });

    test('is refused where one of them breaks off, or is none', async () => {
      const bytes = await tar([{ name: 'a' }, 'text'.repeat(5_000)]);
      const framed = Buffer.concat(parts(bytes, 9_000));
      const cut = read(framed.subarray(0, -3), ZSTD, digestOf(bytes));
      await expect(cut).rejects.toBeInstanceOf(LayerError);
      const followed = read(Buffer.concat([framed, Buffer.from('something else')]), ZSTD, digestOf(bytes));
      await expect(followed).rejects.toBeInstanceOf(LayerError);
    });
  });

  test('takes away by whiteouts', async () => {
    const seen = await read(
      await tar(
        [{ name: '.wh.boot' }],
        [{ name: './.wh..wh..opq' }],
        [{ name: 'etc/.wh.a' }],
        [{ name: 'var/.wh..wh..opq' }],
        [{ name: '.wh..wh.plnk/1.2' }],
        [{ name: '.wh..wh.aufs' }],
      ),
    );
    expect(seen.filter(({ type }) => type !== 'file')).toEqual([
      { type: 'whiteout', path: 'boot' },
      { type: 'opaque', path: '' },
      { type: 'whiteout', path: 'etc/a' },
      { type: 'opaque', path: 'var' },
    ]);
  });

  test('of many files and of one large file', async () => {
    const many = await tar(...Array.from({ length: 3000 }, (_, i) => [{ name: `f${i}` }, `${i}`] as const));
    expect(await read(many)).toHaveLength(3000);
    const large = 'x'.repeat(8 * 1024 * 1024);
    const [file] = await read(await tar([{ name: 'large' }, large]));
    expect(file?.type === 'file' && file.text.length).toBe(large.length);
  });

  test('with the devices that debootstrap leaves in /dev, which the kernel fills itself', async () => {
    const bytes = await tar(
      [{ name: './dev/', type: 'directory' }],
      [{ name: './dev/console', type: 'character-device' }],
      [{ name: 'dev/loop0', type: 'block-device' }],
      [{ name: 'a' }, 'x'],
    );
    expect((await read(bytes)).map(({ path }) => path)).toEqual(['dev', 'a']);
  });

  test('in the format of Unix V7, which has no mark', async () => {
    const archive = await tar([{ name: 'usr/a' }, 'text']);
    archive.fill(0, 257, 512);
    resum(archive);
    expect(await read(archive)).toEqual([{ type: 'file', path: 'usr/a', mode: 0o644, text: 'text' }]);
  });

  test('without entries, and with contents that nobody reads', async () => {
    expect(await read(await tar())).toEqual([]);
    const bytes = await tar([{ name: 'a' }, 'x'.repeat(100_000)], [{ name: 'b' }, 'y']);
    const names: string[] = [];
    for await (const item of readLayer(inChunks(bytes), { mediaType: TAR, diffId: digestOf(bytes) }, live))
      names.push(item.path);
    expect(names).toEqual(['a', 'b']);
  });
});

describe('refused is', () => {
  test.each<[string, Headers]>([
    ['a path that leads out', { name: '../etc/passwd' }],
    ['a path that leads out in the middle', { name: 'a/../../b' }],
    ['a hard link that leads out', { name: 'a', type: 'link', linkname: '../../b' }],
    ['a device', { name: 'usr/lib/sda', type: 'block-device' }],
    ['a fifo in /dev', { name: 'dev/initctl', type: 'fifo' }],
    ['a fifo', { name: 'run/pipe', type: 'fifo' }],
  ])('%s', async (_, header) => {
    await expect(read(await tar([header]))).rejects.toBeInstanceOf(LayerError);
  });

  // As GNU tar writes them (tar's manual, "Storing Sparse Files"): others see another file under another name.
  test.each<[string, Headers]>([
    [
      'in a PAX header',
      { name: 'usr/GNUSparseFile.1/a', pax: { 'GNU.sparse.name': 'usr/a', 'GNU.sparse.major': '1' } },
    ],
    ['in an older PAX header', { name: 'usr/a', pax: { 'GNU.sparse.size': '5' } }],
  ])('a sparse file that is described %s', async (_, header) => {
    await expect(read(await tar([header, 'text']))).rejects.toThrow('sparse');
  });

  test('a sparse file of GNU tar’s own format', async () => {
    const archive = await tar([{ name: 'usr/a' }, 'text']);
    archive.write('S', 156, 'latin1');
    resum(archive);
    await expect(read(archive)).rejects.toThrow(
      new LayerError('/usr/a: an entry of a kind that is not known'),
    );
  });

  test('another content than the diffID says', async () => {
    await expect(read(await tar([{ name: 'a' }]), TAR, digestOf('other'))).rejects.toThrow('has the diffID');
  });

  test('more content than a layer may have, however small its blob', async () => {
    const plain = await tar([{ name: 'zeros' }, '\0'.repeat(1_000_000)]);
    const blob = gzipSync(plain);
    expect(blob.length).toBeLessThan(10_000);
    const reading = async (most: number) => {
      const layer = { mediaType: GZIP, diffId: digestOf(plain) };
      for await (const _ of readLayer(inChunks(blob), layer, live, { most }));
    };
    await expect(reading(plain.length)).resolves.toBeUndefined();
    const less = plain.length - 1;
    await expect(reading(less)).rejects.toThrow(
      new LayerError(`a layer has more than ${less} bytes uncompressed`),
    );
  });

  test('a layer that ends too early, or is no archive', async () => {
    const plain = await tar([{ name: 'a' }, 'x'.repeat(5000)]);
    await expect(read(plain.subarray(0, 2000))).rejects.toBeInstanceOf(LayerError);
    const zipped = gzipSync(plain);
    await expect(read(zipped.subarray(0, 30), GZIP, digestOf(plain))).rejects.toThrow("can't be read");
    await expect(read(Buffer.from('no archive at all'.repeat(100)), GZIP)).rejects.toBeInstanceOf(LayerError);
    await expect(read(plain, 'application/x-smile')).rejects.toThrow('media type application/x-smile');
  });

  test('what the source of the blob refuses', async () => {
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield await tar([{ name: 'a' }, 'x'.repeat(5000)]);
      throw new TypeError('the blob has another digest');
    }
    const reading = async () => {
      for await (const _ of readLayer(broken(), { mediaType: TAR, diffId: digestOf('') }, live));
    };
    await expect(reading()).rejects.toEqual(new TypeError('the blob has another digest'));
    const readingContent = async () => {
      for await (const item of readLayer(broken(), { mediaType: TAR, diffId: digestOf('') }, live))
        if (item.type === 'file') for await (const _ of item.content as AsyncIterable<Uint8Array>);
    };
    await expect(readingContent()).rejects.toEqual(new TypeError('the blob has another digest'));
  });
});

test('an abort in the middle ends the reading and closes its source', async () => {
  const bytes = await tar(
    ...Array.from({ length: 200 }, (_, i) => [{ name: `f${i}` }, 'x'.repeat(5000)] as const),
  );
  const aborting = new AbortController();
  let closed = false;
  async function* source(): AsyncGenerator<Uint8Array> {
    try {
      yield* inChunks(bytes);
    } finally {
      closed = true;
    }
  }
  const reading = async () => {
    for await (const item of readLayer(
      source(),
      { mediaType: TAR, diffId: digestOf(bytes) },
      aborting.signal,
    )) {
      if (item.path === 'f10') aborting.abort(new Error('enough'));
    }
  };
  await expect(reading()).rejects.toThrow('enough');
  await expect.poll(() => closed).toBe(true);
});

test('who stops reading closes the source', async () => {
  const bytes = gzipSync(
    await tar(
      ...Array.from(
        { length: 200 },
        (_, i) => [{ name: `f${i}` }, createHash('sha256').update(`${i}`).digest('hex')] as const,
      ),
    ),
  );
  const closed = new AbortController();
  async function* source(): AsyncGenerator<Uint8Array> {
    try {
      yield* inChunks(bytes, 100);
      await once(closed.signal, 'abort');
    } finally {
      closed.abort();
    }
  }
  for await (const _ of readLayer(source(), { mediaType: GZIP, diffId: digestOf('') }, live)) break;
  closed.abort();
  expect(closed.signal.aborted).toBe(true);
});
