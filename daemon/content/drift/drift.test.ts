import { access, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { TreeEntry } from '../../files/tree-entry.ts';
import { type Drift, driftOf, endForce, forceFileIn, formatDrifts, isForced, sizeDriftOf } from './drift.ts';

const OWNER = { uid: 0, gid: 0 };
const file: TreeEntry = { kind: 'file', mode: 0o644, sha256: 'a', ...OWNER };
const directory: TreeEntry = { kind: 'directory', mode: 0o755, ...OWNER };
const link: TreeEntry = { kind: 'symlink', target: 'a', ...OWNER };

test.each<[string, TreeEntry | undefined, TreeEntry | undefined, string]>([
  ['unexpected', file, undefined, 'is there, but should not be'],
  ['missing', undefined, directory, 'is not there, but should be a directory'],
  ['kind', link, file, 'is a symlink, but should be a file'],
  ['content', { ...file, sha256: 'b' }, file, 'has sha256 b, but should have a'],
  ['content', { ...link, target: 'b' }, link, 'links to b, but should link to a'],
  ['mode', { ...file, mode: 0o7 }, file, 'has mode 0007, but should have 0644'],
  ['mode', { ...directory, mode: 0o700 }, directory, 'has mode 0700, but should have 0755'],
  ['owner', { ...file, uid: 7 }, file, 'belongs to 7:0, but should belong to 0:0'],
  ['owner', { ...link, gid: 7 }, link, 'belongs to 0:7, but should belong to 0:0'],
])(
  '%s: the message names the path, what was found and what would be right',
  (what, found, desired, message) => {
    expect(driftOf('/etc/a', found, desired)).toEqual({
      path: '/etc/a',
      what,
      message: `/etc/a: ${message}`,
    });
  },
);

test('what is as it should be has not drifted', () => {
  for (const entry of [file, directory, link, undefined])
    expect(driftOf('/etc/a', entry, entry)).toBeUndefined();
});

test('the size of a file tells that it has drifted before it is read', () => {
  const stats = (isFile: boolean, size: number) =>
    ({ isFile: () => isFile, size }) as Parameters<typeof sizeDriftOf>[1];
  expect(sizeDriftOf('/etc/a', stats(true, 1), 2)).toEqual({
    path: '/etc/a',
    what: 'content',
    message: '/etc/a: has 1 byte, but should have 2',
  });
  for (const given of [stats(true, 2), stats(false, 1), undefined])
    expect(sizeDriftOf('/etc/a', given, 2)).toBeUndefined();
});

test('a condition names ten paths, and how many more there are', () => {
  const drifts = (count: number): Drift[] =>
    Array.from({ length: count }, (_, index) => ({
      path: `/${index}`,
      what: 'mode',
      message: `drift ${index}`,
    }));
  const text = formatDrifts(drifts(10));
  expect(text).toContain('drift 8; drift 9. Revert the change');
  expect(text).toContain('run shale repair for the node, or create /run/machine-config-daemon-force on it');
  expect(formatDrifts(drifts(11))).toContain('drift 9 and 1 more. Revert');
  expect(formatDrifts(drifts(12))).toContain('drift 9 and 2 more. Revert');
});

test('an admin permits one write by a file, which ends with it', async () => {
  const root = await mkdtemp(path.join(tmpdir(), 'shale-drift-'));
  onTestFinished(() => rm(root, { recursive: true }));
  expect(await isForced(root)).toBe(false);
  await mkdir(path.dirname(forceFileIn(root)), { recursive: true });
  await writeFile(forceFileIn(root), '');
  expect(await isForced(root)).toBe(true);
  await endForce(root);
  expect(await isForced(root)).toBe(false);
  await expect(access(forceFileIn(root))).rejects.toThrow('ENOENT');
  await endForce(root);
});
