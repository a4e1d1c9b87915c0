import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { setupRootObstacle } from './setup-root.ts';

const FILE = 'usr/lib/composefs/setup-root-conf.toml';

/** @param text of the configuration; there is none where it isn't given. */
async function obstacle(text?: string): Promise<string | undefined> {
  const root = await mkdtemp(path.join(tmpdir(), 'shale-root-'));
  onTestFinished(() => rm(root, { recursive: true }));
  if (text !== undefined) {
    await mkdir(path.join(root, path.dirname(FILE)), { recursive: true });
    await writeFile(path.join(root, FILE), text);
  }
  return setupRootObstacle(root);
}

test('a root is bootable without a configuration', async () => {
  expect(await obstacle()).toBeUndefined();
});

test.each([
  '',
  '[etc]\nmount = "bind"\n',
  '[etc]\nmount = "bind"\ntransient = true\n',
  '[etc]\ntransient = false\n[var]\nmount = "none"\n',
  '[var]\nmount = "root"\ntransient = true\n[root]\ntransient = false\n',
  '[later]\nkey = 1\n',
])('a root is bootable with %j', async (text) => {
  expect(await obstacle(text)).toBeUndefined();
});

test.each([
  ['[etc]\ntransient = true\n', 'makes /etc transient'],
  ['[etc]\nmount = "volatile"\n', 'makes /etc transient'],
  ['[etc]\nmount = "overlay"\n', 'has etc.mount = "overlay"'],
  ['[etc]\nmount = "root"\n', 'has etc.mount = "none"'],
  ['[var]\nmount = "transient"\n', 'makes /var transient'],
  ['[root]\ntransient = true\n', 'makes / transient'],
  ['[etc]\nmount = "Bind"\n', 'can’t be read by bootc’s initramfs'],
  ['etc = 1\n', 'can’t be read by bootc’s initramfs'],
  ['[etc\n', 'can’t be read by bootc’s initramfs'],
])('a root is refused with %j', async (text, why) => {
  expect(await obstacle(text)).toContain(`/${FILE} ${why}`);
});
