/** systemd-tmpfiles itself runs the fragment: which files and links a root has afterwards. */
import { lstat, mkdtemp, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { formatTmpfiles } from './tmpfiles.ts';

let root: string;
beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'shale-tmpfiles-'));
});
afterEach(() => rm(root, { recursive: true }));

async function create(fragment: string): Promise<void> {
  const file = path.join(root, 'fragment.conf');
  await writeFile(file, fragment);
  await execa('systemd-tmpfiles', ['--create', `--root=${root}`, file]);
  await rm(file);
}

test.each(['a\nd /evil 0777 - - -', 'a\\b%c\\x41 d ', '-', ' ', '"q"\'', 'å\u2028\t\r'])(
  'a link leads to %j, and nothing else is created',
  async (target) => {
    await create(formatTmpfiles([{ kind: 'link', path: '/l', target }]));
    expect(await readdir(root)).toEqual(['l']);
    expect(await readlink(path.join(root, 'l'))).toBe(target);
  },
);

test('a path arrives with its quotes, backslashes, spaces and percent signs', async () => {
  const name = `a "b" 'c' \\d %e`;
  const owner = { user: { id: process.getuid?.() ?? 0 }, group: { id: process.getgid?.() ?? 0 } };
  await create(formatTmpfiles([{ kind: 'directory', path: `/${name}`, mode: 0o750, ...owner }]));
  expect(await readdir(root)).toEqual([name]);
  expect((await lstat(path.join(root, name))).mode & 0o7777).toBe(0o750);
});

test('an owner is set for the path that it is of, and for no other', async () => {
  const names = ['s?adow', 'a*', '[ab]', 'a{b,c}', 'a\\b', '~x', 'a b'];
  const others = ['shadow', 'ab', 'a', 'b', 'ac'];
  for (const name of [...names, ...others]) await writeFile(path.join(root, name), '', { mode: 0o600 });
  const own = { user: { id: process.getuid?.() ?? 0 }, group: { id: process.getgid?.() ?? 0 } };
  await create(
    formatTmpfiles(names.map((name) => ({ kind: 'ownership', path: `/${name}`, mode: 0o640, ...own }))),
  );
  const modes = await Promise.all(
    [...names, ...others].map(async (name) => [name, (await lstat(path.join(root, name))).mode & 0o777]),
  );
  expect(modes).toEqual([...names.map((name) => [name, 0o640]), ...others.map((name) => [name, 0o600])]);
});

test('nothing that is there already gets other contents, and the largest file that a line can hold arrives', async () => {
  const own = { user: { id: process.getuid?.() ?? 0 }, group: { id: process.getgid?.() ?? 0 } };
  await writeFile(path.join(root, 'mine'), 'data');
  const file = (name: string, contents: Uint8Array) =>
    ({ kind: 'file', path: `/${name}`, mode: 0o644, ...own, contents }) as const;
  await create(
    formatTmpfiles([
      file('mine', Buffer.from('ours')),
      { kind: 'link', path: '/mine', target: 'x' },
      file('large', Buffer.alloc(786_000, 'x')),
      file('larger', Buffer.alloc(787_000, 'x')),
    ]),
  );
  expect([
    await readFile(path.join(root, 'mine'), 'utf8'),
    (await lstat(path.join(root, 'large'))).size,
  ]).toEqual(['data', 786_000]);
  expect(await readdir(root)).not.toContain('larger');
});
