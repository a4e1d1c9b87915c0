import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { Resource } from './config.ts';
import { ContentsReader, DEFAULT_LIMITS } from './contents.ts';

const text = 'some text\n'.repeat(100);
const plain = { source: `data:,${encodeURIComponent(text)}` };
const gzipped = { compression: 'gzip', source: base64(gzipSync(text)) };

function base64(data: Uint8Array): string {
  return `data:;base64,${Buffer.from(data).toString('base64')}`;
}

function check(resource: Resource, limits = DEFAULT_LIMITS) {
  return new ContentsReader(limits).check(resource, '$.contents');
}

function sha(algorithm: string, of: string): string {
  return `${algorithm}-${createHash(algorithm).update(of).digest('hex')}`;
}

describe('contents', () => {
  it.each([
    ['plain', plain],
    ['gzip', gzipped],
  ])('decodes %s', (_, resource) => {
    const decoded = new ContentsReader(DEFAULT_LIMITS).decode(resource, '$');
    expect('bytes' in decoded && Buffer.from(decoded.bytes).toString()).toBe(text);
  });

  it('treats an absent or empty source as an empty file', () => {
    expect(check({})).toEqual([]);
    expect(check({ source: '' })).toEqual([]);
  });

  it('refuses what is not gzip', () => {
    expect(check({ compression: 'gzip', source: plain.source })).toMatchObject([
      { path: '$.contents.source' },
    ]);
    const cut = base64(gzipSync(text).subarray(0, 20));
    expect(check({ compression: 'gzip', source: cut })).toMatchObject([{ path: '$.contents.source' }]);
  });

  it('rejects remote contents with a reason', () => {
    expect(check({ source: 'https://example.org/x' })).toMatchObject([
      { reason: 'is a https URL; a node fetches nothing to configure itself' },
    ]);
  });

  it('stops decompressing at the limit of a file', () => {
    const bomb = { compression: 'gzip', source: base64(gzipSync(Buffer.alloc(64 * 1024 * 1024))) };
    expect(bomb.source.length).toBeLessThan(100_000);
    expect(check(bomb)).toMatchObject([{ path: '$.contents.source', reason: 'is too large' }]);
  });

  it.each([
    ['files that are too large', { fileBytes: text.length - 1, configBytes: 2 * text.length }],
    ['files that are too large together', { fileBytes: text.length, configBytes: 2 * text.length - 1 }],
  ])('decompresses nothing any more after %s', (_name, limits) => {
    const reader = new ContentsReader(limits);
    const together = { reason: 'makes the files of the config too large together' };
    for (const path of ['$[0]', '$[1]', '$[2]']) reader.check(gzipped, path);
    expect(reader.check(gzipped, '$[3]')).toMatchObject([together]);
    // Reading further would report another problem: this is not gzip.
    expect(reader.check({ compression: 'gzip', source: 'data:,no' }, '$[4]')).toMatchObject([together]);
  });

  it.each([plain, gzipped])('counts exactly up to the limit of a file', (resource) => {
    expect(check(resource, { ...DEFAULT_LIMITS, fileBytes: text.length })).toEqual([]);
    expect(check(resource, { ...DEFAULT_LIMITS, fileBytes: text.length - 1 })).toHaveLength(1);
  });

  it('counts all files of a config against its limit, a source seen before too', () => {
    const reader = new ContentsReader({ fileBytes: text.length, configBytes: 2 * text.length + 1 });
    expect(reader.check(plain, '$[0]')).toEqual([]);
    expect(reader.check(plain, '$[1]')).toEqual([]);
    expect(reader.check({ source: 'data:,a' }, '$[2]')).toEqual([]);
    expect(reader.check({ source: 'data:,b' }, '$[3]')).toMatchObject([{ path: '$[3].source' }]);
  });

  it.each(['sha256', 'sha512'])('checks a %s of the decompressed contents', (algorithm) => {
    const verified = (resource: Resource, of: string) =>
      check({ ...resource, verification: { hash: sha(algorithm, of) } });
    expect(verified(plain, text)).toEqual([]);
    expect(verified(gzipped, text)).toEqual([]);
    expect(verified(plain, 'other')).toMatchObject([
      { path: '$.contents.verification.hash', expected: sha(algorithm, text) },
    ]);
  });

  it.each(['crc32-0', 'sha256-xyz', 'sha256'])('does not compute a hash that is none: %s', (hash) => {
    // That is a problem of the config's form, which is reported with the others of its kind.
    expect(check({ ...plain, verification: { hash } })).toEqual([]);
  });
});
