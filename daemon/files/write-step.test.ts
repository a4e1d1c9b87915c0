import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { recordSyncs } from '../../test/fixtures/synced-files.ts';
import { takeSteps, type WriteStep } from './write-step.ts';

const own = { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 };

let root: string;
const at = (name: string) => path.join(root, name);
const write = (step: WriteStep) => takeSteps({ root }, [step]);
beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'write-step-'));
  onTestFinished(() => rm(root, { recursive: true }));
  await mkdir(at('etc/full'), { recursive: true });
  await writeFile(at('etc/full/file'), 'text');
});

test.each<[string, WriteStep]>([
  ['a file', { kind: 'file', name: '/etc/new', contents: Buffer.from('new'), mode: 0o600, ...own }],
  ['a link', { kind: 'symlink', name: '/etc/new', target: 'full', ...own }],
  ['a directory', { kind: 'directory', name: '/etc/new', mode: 0o700, ...own }],
  ['one more name of a file', { kind: 'hard link', name: '/etc/new', source: '/etc/full/file' }],
])('%s is durable once it is written: so is the directory that it is in', async (_what, step) => {
  const synced = await recordSyncs();
  await write(step);
  expect(await readdir(at('etc'))).toEqual(['full', 'new']);
  expect(synced.at(-1)).toBe(at('etc'));
});

test('so is a file itself, before it is called as it should be', async () => {
  const synced = await recordSyncs();
  await write({ kind: 'file', name: '/etc/new', contents: Buffer.from('new'), mode: 0o600, ...own });
  expect(synced).toEqual([expect.stringContaining('/etc/.shale-new.new'), at('etc')]);
  expect([await readFile(at('etc/new'), 'utf8'), (await stat(at('etc/new'))).mode & 0o777]).toEqual([
    'new',
    0o600,
  ]);
});

test('what each step makes is what it says', async () => {
  await write({ kind: 'symlink', name: '/etc/link', target: 'full/file', ...own });
  await write({ kind: 'hard link', name: '/etc/same', source: '/etc/full/file' });
  await write({ kind: 'restore', name: '/etc/copy', source: at('etc/full/file') });
  expect(await readlink(at('etc/link'))).toBe('full/file');
  expect((await stat(at('etc/same'))).ino).toBe((await stat(at('etc/full/file'))).ino);
  expect(await readFile(at('etc/copy'), 'utf8')).toBe('text');
  for (const _again of [1, 2]) {
    await write({ kind: 'remove', name: '/etc/link' });
    await expect(lstat(at('etc/link'))).rejects.toThrow('ENOENT');
  }
});

test.each([
  [true, 0o711],
  [false, 0o750],
  [undefined, 0o750],
])(
  'a directory that is there by now keeps its mode if it is but a parent (%s)',
  async (isParent, expected) => {
    await chmod(at('etc/full'), 0o711);
    const step = { kind: 'directory', name: '/etc/full', mode: 0o750, ...own } as const;
    await write(isParent === undefined ? step : { ...step, isParent });
    expect((await stat(at('etc/full'))).mode & 0o777).toBe(expected);
  },
);

describe('removing a directory', () => {
  const remove = (name: string, evenIfNotEmpty: 'leave' | 'fail') =>
    write({ kind: 'remove directory', name, evenIfNotEmpty });

  test.each(['leave', 'fail'] as const)(
    'removes an empty one, and is harmless to repeat (%s)',
    async (how) => {
      await rm(at('etc/full/file'));
      await remove('/etc/full', how);
      await remove('/etc/full', how);
      expect(await readdir(at('etc'))).toEqual([]);
    },
  );

  test('leaves one that is not empty, or fails of it, as it is told', async () => {
    await remove('/etc/full', 'leave');
    await expect(remove('/etc/full', 'fail')).rejects.toThrow('/etc/full: ENOTEMPTY');
    expect(await readdir(at('etc/full'))).toEqual(['file']);
  });

  test('leaves what is no directory any more', async () => {
    await symlink('full', at('etc/link'));
    for (const name of ['/etc/full/file', '/etc/link']) await remove(name, 'fail');
    expect((await readdir(at('etc'))).sort()).toEqual(['full', 'link']);
  });

  test('fails of anything else', async () => {
    await expect(remove(`/etc/${'x'.repeat(300)}`, 'leave')).rejects.toThrow('ENAMETOOLONG');
  });
});
