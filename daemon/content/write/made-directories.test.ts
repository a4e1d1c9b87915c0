import { mkdir, readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { emptyNodeConfig } from '../../../machineconfig/node-config.ts';
import { configOf, fileOf } from '../../../test/fixtures/configs.ts';
import { writeConfig } from '../../../test/fixtures/standard-content.ts';
import { stepUnderTest } from '../../../test/fixtures/step-context.ts';
import { readOriginals } from './originals.ts';
import type { WriteTarget } from './write-content.ts';

const own = { user: { id: process.getuid?.() ?? 0 }, group: { id: process.getgid?.() ?? 0 } };
const withFile = (name: string) => configOf({}, { files: new Map([[name, fileOf(name, 'text', own)]]) });
const deep = withFile('/etc/walk/deep/own.conf');
const other = withFile('/etc/other/own.conf');

/** A root on which the directories of a config were made. */
async function createRoot() {
  const { context, root } = await stepUnderTest();
  const { relabel, setPasswords } = context.ports;
  const target: WriteTarget = { root, stateDir: path.join(root, 'var/lib/shale'), relabel, setPasswords };
  const { signal } = context;
  await mkdir(path.join(root, 'var'));
  await writeConfig(target, { from: emptyNodeConfig, to: deep }, { signal });
  const made = async () => [...(await readOriginals(target.stateDir)).made];
  expect(await made()).toEqual(['/etc/walk', '/etc/walk/deep']);
  return { root, target, made, signal };
}

test('a deployment that is staged on the way out of layering has none of the directories made before', async () => {
  const { root, target, made, signal } = await createRoot();
  const staged = { ...target, root: path.join(root, 'staged'), varRoot: root };
  await mkdir(path.join(staged.root, 'etc'), { recursive: true });
  await writeConfig(staged, { from: emptyNodeConfig, to: other }, { signal });
  expect(await made()).toEqual(['/etc/other']);
});

test('a deployment that is staged without a directory /var has that of the running root', async () => {
  const { root, target, made, signal } = await createRoot();
  const staged = { ...target, root: path.join(root, 'staged'), varRoot: root };
  await mkdir(path.join(staged.root, 'etc'), { recursive: true });
  await mkdir(path.join(root, 'var/lib/own'));
  await writeConfig(staged, { from: emptyNodeConfig, to: withFile('/var/lib/new/state') }, { signal });
  expect(await made()).toEqual(['/var/lib/new']);
  await writeConfig(staged, { from: withFile('/var/lib/new/state'), to: emptyNodeConfig }, { signal });
  expect([await made(), await readdir(path.join(root, 'var/lib'))]).toEqual([[], ['own', 'shale']]);
});

test('an admin has removed the directories that were made', async () => {
  const { root, target, made, signal } = await createRoot();
  await rm(path.join(root, 'etc/walk'), { recursive: true });
  await writeConfig(target, { from: deep, to: other, force: true }, { signal });
  expect(await made()).toEqual(['/etc/other']);
});
