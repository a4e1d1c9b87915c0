import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { nodePaths } from '../../../api/names.ts';
import { deadline } from '../../../test/fixtures/patience.ts';
import { deployment } from '../../../test/fixtures/step-context.ts';
import { contentDigestAt } from '../../files/read-tree.ts';
import { resetManagedPaths } from './reset-managed-paths.ts';

const signal = deadline(30_000);

let top: string;
const at = (name: string) => path.join(top, name);
async function put(files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(path.dirname(at(name)), { recursive: true });
    await writeFile(at(name), text);
  }
}
beforeEach(async () => {
  top = await mkdtemp(path.join(tmpdir(), 'reset-managed-'));
  onTestFinished(() => rm(top, { recursive: true }));
  for (const name of ['root/etc', 'booted/usr/etc', 'staged/usr/etc', 'staged/etc']) {
    await mkdir(at(name), { recursive: true });
  }
});

/** @param managed names below /etc that Shale wrote as they are. */
async function reset(...managed: readonly string[]): Promise<void> {
  const digests = await Promise.all(
    managed.map(async (name) => [`/etc/${name}`, await contentDigestAt(at('root'), `/etc/${name}`)] as const),
  );
  const places = { root: at('root'), booted: deployment(at('booted')), staged: deployment(at('staged')) };
  await resetManagedPaths(places, new Map(digests), signal);
}
const next = (name: string) => readFile(at(`staged/etc/${name}`), 'utf8');

test("what Shale wrote is as the image has it, and what an admin wrote as ostree's merge has it", async () => {
  for (const name of ['own', 'gone', 'admin']) {
    await put({ [`root/etc/${name}`]: 'running', [`staged/etc/${name}`]: 'running' });
  }
  await put({ 'staged/usr/etc/own': 'of the image', 'staged/usr/etc/admin': 'of the image' });
  await reset('own', 'gone');
  expect([await next('own'), await next('admin')]).toEqual(['of the image', 'running']);
  expect((await readdir(at('staged/etc'))).sort()).toEqual(['admin', 'own']);
});

test('so is what only has another owner by the fragment of the image that runs', async () => {
  await put({
    [`root/${nodePaths.tmpfiles}`]: 'z /etc/owned 0640 core core - -\n',
    'booted/usr/etc/owned': 'same',
    'root/etc/owned': 'same',
    'staged/usr/etc/owned': 'of the image',
    'staged/etc/owned': 'same',
  });
  await reset();
  expect(await next('owned')).toBe('of the image');
});

test('units are enabled and disabled as the config of the image wants it', async () => {
  const wants = 'etc/systemd/system/multi-user.target.wants';
  const units = [{ name: 'on.service', enabled: false }];
  const spec = { config: { ignition: { version: '3.4.0' }, systemd: { units } } };
  await put({
    'staged/usr/lib/systemd/system/on.service': '[Install]\nWantedBy=multi-user.target\n',
    [`staged${nodePaths.imageConfig}`]: JSON.stringify({ metadata: { name: 'rendered-a' }, spec }),
  });
  for (const place of ['staged/usr', 'staged', 'root', 'booted/usr']) {
    await mkdir(at(`${place}/${wants}`), { recursive: true });
    await symlink('/usr/lib/systemd/system/on.service', at(`${place}/${wants}/on.service`));
  }
  await reset();
  expect(await readdir(at(`staged/${wants}`))).toEqual([]);
});

test('what a killed write left is not carried along', async () => {
  await put({ 'root/etc/.shale-new.file': 'half', 'staged/etc/.shale-new.file': 'half' });
  await reset();
  expect(await readdir(at('staged/etc'))).toEqual([]);
});

test('a directory that ostree kept for what Shale wrote goes with it, and one with a file of the admin stays', async () => {
  for (const name of ['gone.d/deep/own', 'kept.d/own', 'kept.d/admin']) {
    await put({ [`root/etc/${name}`]: 'running', [`staged/etc/${name}`]: 'running' });
  }
  await put({ 'booted/usr/etc/gone.d/deep/own': 'booted', 'booted/usr/etc/kept.d/own': 'booted' });
  await reset('gone.d/deep/own', 'kept.d/own');
  expect(await readdir(at('staged/etc'))).toEqual(['kept.d']);
  expect(await readdir(at('staged/etc/kept.d'))).toEqual(['admin']);
});
