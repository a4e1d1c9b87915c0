import { mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { NodeConfig } from '../../../machineconfig/node-config.ts';
import { configOf, fileOf } from '../../../test/fixtures/configs.ts';
import { deadline } from '../../../test/fixtures/patience.ts';
import { noLabels, noWrongLabels } from '../../host/selinux-labels.ts';
import { type RestoreTarget, restoreContent, restoreLabels } from './restore-content.ts';

/** Files belong to whoever runs the test. */
const OWN = { user: { id: process.getuid?.() ?? 0 }, group: { id: process.getgid?.() ?? 0 } };
const signal = deadline(60_000);
const directory = (name: string, mode: number) => [name, { path: name, mode, ...OWN }] as const;
const file = (name: string, text: string) => [name, fileOf(name, text, OWN)] as const;

/** A private directory, which comes after its file by the order of the config. */
const config: NodeConfig = configOf(
  {},
  {
    name: 'rendered-1',
    files: new Map([
      file('/etc/private/key', 'secret'),
      file('/etc/app.conf', 'rendered'),
      file('/etc/deep/er/x.conf', 'rendered'),
      file('/usr/lib/app.conf', 'of the image'),
    ]),
    directories: new Map([directory('/etc/private', 0o700)]),
    links: new Map([
      ['/etc/another-name', { path: '/etc/another-name', target: '/etc/app.conf', hard: true, ...OWN }],
      ['/etc/link', { path: '/etc/link', target: 'app.conf', hard: false, ...OWN }],
    ]),
  },
);
const layered = { delivery: 'Layered', config } as const;
const ALL = [
  '/etc/app.conf',
  '/etc/deep',
  '/etc/deep/er',
  '/etc/deep/er/x.conf',
  '/etc/link',
  '/etc/private',
  '/etc/private/key',
  '/etc/another-name',
];

async function rootOfNode() {
  const root = await mkdtemp(path.join(tmpdir(), 'shale-restore-'));
  onTestFinished(() => rm(root, { recursive: true }));
  for (const name of ['etc', 'var', 'usr']) await mkdir(path.join(root, name));
  const relabelled: (readonly string[])[] = [];
  const target: RestoreTarget = {
    root,
    stateDir: path.join(root, 'var/lib/shale'),
    setPasswords: async () => undefined,
    relabel: async (_root, names) => void relabelled.push(names),
    wrongLabels: noWrongLabels,
  };
  const at = (name: string) => path.join(root, name);
  return { target, relabelled, at };
}

test('an image that was taken apart is restored: directories before what is in them, files before their hard links', async () => {
  const { target, relabelled, at } = await rootOfNode();
  expect(await restoreContent(target, layered, signal)).toEqual({ written: ALL, removed: [] });
  expect(relabelled).toEqual([ALL]);
  expect((await stat(at('etc/private'))).mode & 0o777).toBe(0o700);
  expect((await stat(at('etc/another-name'))).ino).toBe((await stat(at('etc/app.conf'))).ino);
  await expect(stat(at('usr/lib'))).rejects.toThrow('ENOENT');

  expect(await restoreContent(target, layered, signal)).toEqual({ written: [], removed: [] });
});

test('only what differs is written, and what took its place is removed', async () => {
  const { target, relabelled, at } = await rootOfNode();
  await restoreContent(target, layered, signal);
  await writeFile(at('etc/app.conf'), 'by hand');
  await rm(at('etc/link'));
  await mkdir(at('etc/link'));
  await rm(at('etc/private'), { recursive: true });
  await symlink('link', at('etc/private'));
  await rm(at('etc/deep'), { recursive: true });
  await writeFile(at('etc/deep'), 'in the way');
  await writeFile(at('etc/theirs.conf'), 'by an admin');
  relabelled.length = 0;

  const { written, removed } = await restoreContent(target, layered, signal);

  expect(written).toEqual(expect.arrayContaining(['/etc/app.conf', '/etc/link', '/etc/private']));
  expect(removed).toEqual([]);
  expect(await readFile(at('etc/link'), 'utf8')).toBe('rendered');
  expect(await readFile(at('etc/deep/er/x.conf'), 'utf8')).toBe('rendered');
  expect(await readFile(at('etc/private/key'), 'utf8')).toBe('secret');
  expect(await readFile(at('etc/theirs.conf'), 'utf8')).toBe('by an admin');
  expect(await restoreContent(target, layered, signal)).toEqual({ written: [], removed: [] });
});

test('standard mode is restored over what somebody has changed', async () => {
  const { target, at } = await rootOfNode();
  const standard = {
    delivery: 'Standard',
    config: configOf({}, { files: new Map([file('/etc/app.conf', 'rendered')]) }),
  } as const;
  await writeFile(at('etc/app.conf'), 'by hand');
  expect((await restoreContent(target, standard, signal)).written).toEqual(['/etc/app.conf']);
  expect(await readFile(at('etc/app.conf'), 'utf8')).toBe('rendered');
});

test('a signal that is aborted ends it before the next path', async () => {
  const { target, at } = await rootOfNode();
  await expect(restoreContent(target, layered, AbortSignal.abort())).rejects.toThrow(/abort/);
  await expect(stat(at('etc/app.conf'))).rejects.toThrow('ENOENT');
});

test('nothing is labelled where no label differs', async () => {
  const { target, relabelled } = await rootOfNode();
  expect(await restoreLabels({ ...target, relabel: noLabels }, layered, signal)).toEqual([]);
  expect(await restoreLabels(target, layered, signal)).toEqual([]);
  expect(relabelled).toEqual([]);
});
