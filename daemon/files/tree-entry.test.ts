import { createHash } from 'node:crypto';
import { chmod, mkdir, mkdtemp, rm, symlink, truncate, utimes, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  ABSENT,
  contentDigest,
  ignoreMissing,
  readTreeEntry,
  sameContent,
  sameEntry,
  type TreeEntry,
} from './tree-entry.ts';

const OWN = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
const file: TreeEntry = { kind: 'file', mode: 0o644, uid: 0, gid: 0, sha256: 'a' };
const directory: TreeEntry = { kind: 'directory', mode: 0o755, uid: 0, gid: 0 };
const link: TreeEntry = { kind: 'symlink', uid: 0, gid: 0, target: 'a' };
const special: TreeEntry = { kind: 'special' };

let dir: string;
const at = (name: string) => path.join(dir, name);
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'shale-tree-entry-'));
});
afterEach(() => rm(dir, { recursive: true }));

describe('an entry that is read', () => {
  test.each([0, 1, 256 * 1024, 256 * 1024 + 1, 1024 * 1024])(
    'has the digest of all of its %d bytes',
    async (size) => {
      const bytes = Buffer.alloc(size, 'x');
      await writeFile(at('file'), bytes);
      await chmod(at('file'), 0o4751);
      const sha256 = createHash('sha256').update(bytes).digest('hex');
      expect(await readTreeEntry(at('file'))).toEqual({ kind: 'file', mode: 0o4751, sha256, ...OWN });
    },
  );

  test('that is too large stands for its size and time of change, and equals no digest', async () => {
    await writeFile(at('file'), '12345');
    const unread = await readTreeEntry(at('file'), 4);
    expect(unread).toMatchObject({ kind: 'file', sha256: expect.stringMatching(/^unread, 5 bytes of \d+$/) });
    expect(await readTreeEntry(at('file'), 5)).toMatchObject({
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    await utimes(at('file'), 1, 1);
    expect(sameEntry(await readTreeEntry(at('file'), 4), unread)).toBe(false);
    await truncate(at('file'), 4);
    expect(await readTreeEntry(at('file'), 4)).toMatchObject({
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
  });

  test('is what lies there: a directory, a link that is not followed, a socket', async () => {
    await mkdir(at('directory'), { mode: 0o700 });
    await symlink('directory', at('link'));
    const server = createServer().listen(at('socket'));
    await new Promise((resolve) => server.once('listening', resolve));
    expect(await readTreeEntry(at('directory'))).toEqual({ kind: 'directory', mode: 0o700, ...OWN });
    expect(await readTreeEntry(at('link'))).toEqual({ kind: 'symlink', target: 'directory', ...OWN });
    expect(await readTreeEntry(at('socket'))).toEqual({ kind: 'special' });
    server.close();
  });

  test('is nothing where nothing is, also below a file', async () => {
    await writeFile(at('file'), '');
    expect(await readTreeEntry(at('none'))).toBeUndefined();
    expect(await readTreeEntry(at('file/below'))).toBeUndefined();
    await expect(readTreeEntry(`${at('file')}\0`)).rejects.toThrow();
  });
});

test('only an error that says that nothing is there is ignored', () => {
  for (const code of ['ENOENT', 'ENOTDIR'])
    expect(ignoreMissing(Object.assign(new Error(code), { code }))).toBeUndefined();
  for (const error of [
    Object.assign(new Error('EACCES'), { code: 'EACCES' }),
    new Error('ENOENT'),
    { code: 'ENOENT' },
  ]) {
    expect(() => ignoreMissing(error)).toThrow();
  }
});

test('content digests name kind, content, mode and owner', () => {
  expect([undefined, file, directory, link, special].map(contentDigest)).toEqual([
    ABSENT,
    'file 0644 0:0 sha256:a',
    'directory 0755 0:0',
    'symlink 0:0 a',
    'special',
  ]);
  expect(contentDigest({ ...directory, mode: 0o7 })).toBe('directory 0007 0:0');
});

test('the same content is of the same kind, no matter who owns it and may read it', () => {
  expect(sameContent(file, { ...file, uid: 1, mode: 0o600 })).toBe(true);
  expect(sameContent(file, { ...file, sha256: 'b' })).toBe(false);
  expect(sameContent(link, { ...link, uid: 1 })).toBe(true);
  expect(sameContent(link, { ...link, target: 'b' })).toBe(false);
  expect(sameContent(directory, { ...directory, mode: 0o700 })).toBe(true);
  expect(sameContent(file, link)).toBe(false);
  expect(sameContent(link, file)).toBe(false);
  expect(sameContent(file, undefined)).toBe(false);
  expect(sameContent(undefined, undefined)).toBe(true);
});
