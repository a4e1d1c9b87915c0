import { lstat, mkdtemp, readdir, readlink, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { formatTmpfiles } from './tmpfiles.ts';

/** What systemd-tmpfiles makes of a fragment. */

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
