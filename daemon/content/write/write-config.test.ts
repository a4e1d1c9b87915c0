import { cp, mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { emptyNodeConfig } from '../../../machineconfig/node-config.ts';
import { config, createTree, first, link, OWN, second } from '../../../test/fixtures/config-tree.ts';
import { configOf, fileOf } from '../../../test/fixtures/configs.ts';
import { writeConfig } from '../../../test/fixtures/standard-content.ts';
import { standard, stepUnderTest } from '../../../test/fixtures/step-context.ts';
import { contentDigestAt } from '../../files/read-tree.ts';
import { nodeConfigOf } from '../../records/current.ts';
import { readManagedPaths } from '../../records/managed-paths.ts';
import { readOriginals } from './originals.ts';
import { ForeignChangeError, UndoError } from './write-content.ts';
import { NoRoomError, UnlabelledError } from './write-log.ts';

/** Files belong to whoever runs the test. */
test('a node goes from config to config and back to what was there at first', async () => {
  const { target, write, snapshot, text, at } = await createTree();
  const stock = await snapshot();
  expect(await write(emptyNodeConfig, first)).toEqual({
    written: [
      '/etc/admin.conf',
      '/etc/app',
      '/etc/app/own.conf',
      '/etc/becomes',
      '/etc/link',
      '/etc/stock.conf',
    ],
    removed: [],
  });
  expect((await readOriginals(target.stateDir)).paths).toEqual(
    new Map([
      ['/etc/admin.conf', { kind: 'copy' }],
      ...['/etc/app/own.conf', '/etc/becomes', '/etc/link', '/etc/stock.conf'].map(
        (name) => [name, { kind: 'image' }] as const,
      ),
    ]),
  );
  expect(await write(first, first)).toEqual({ written: [], removed: [] });
  expect(await write(first, second)).toEqual({
    written: [
      '/etc/admin.conf',
      '/etc/app/own.conf',
      '/etc/becomes',
      '/etc/becomes/below',
      '/etc/dir',
      '/etc/stock.conf',
      '/var/new',
      '/var/new/file',
    ],
    removed: ['/etc/link'],
  });
  expect([
    await text('etc/admin.conf'),
    await text('etc/stock.conf'),
    await text('etc/app/own.conf'),
  ]).toEqual(['admin', 'stock', 'two']);
  expect((await stat(at('etc/admin.conf'))).mode & 0o7777).toBe(0o640);
  await write(second, emptyNodeConfig);
  expect(await snapshot()).toEqual(stock);
  expect(await readManagedPaths(target.root)).toEqual(new Map());
  expect(await readdir(path.join(target.stateDir, 'originals'))).toEqual([]);
});

test.each([
  'log what is there',
  'keep originals',
  'file /etc/app/own.conf',
  'label',
  'forget what was there',
])('a write that fails before the step %j is undone, and succeeds when it is repeated', async (failing) => {
  const { target, write, snapshot } = await createTree();
  const state = async () => ({
    tree: await snapshot(),
    managed: await readManagedPaths(target.root),
    originals: await readOriginals(target.stateDir),
  });
  await write(emptyNodeConfig, first);
  const before = await state();
  const beforeStep = (step: string) => {
    if (step === failing) throw new Error('no power');
  };
  await expect(write(first, second, { beforeStep })).rejects.toThrow(/^no power$/);
  expect(await state()).toEqual(before);
  await write(first, second);
  expect((await state()).tree).not.toEqual(before.tree);
});

test('a write that the disk has no room for does not begin', async () => {
  const { write, snapshot } = await createTree();
  const before = await snapshot();
  const large = Object.defineProperty(Buffer.from('x'), 'byteLength', { value: 2 ** 60 });
  const file = { ...fileOf('/etc/large', '', OWN), contents: large };
  const steps: string[] = [];
  const beforeStep = (step: string) => void steps.push(step);
  await expect(
    write(emptyNodeConfig, configOf({}, { files: new Map([['/etc/large', file]]) }), { beforeStep }),
  ).rejects.toThrow(NoRoomError);
  expect(steps).toEqual([]);
  expect(await snapshot()).toEqual(before);
});

test('a signal that is aborted ends a write between two steps, and all of it is undone', async () => {
  const { write, snapshot } = await createTree();
  const before = await snapshot();
  const down = new AbortController();
  const beforeStep = (step: string) => {
    if (step.startsWith('file ')) down.abort();
  };
  await expect(write(emptyNodeConfig, first, { signal: down.signal, beforeStep })).rejects.toThrow(/abort/);
  expect(await snapshot()).toEqual(before);
});

describe('what somebody else changed', () => {
  test('since the last write is refused before anything is written, unless forced', async () => {
    const { write, snapshot, text, at } = await createTree();
    await write(emptyNodeConfig, first);
    await writeFile(at('etc/app/own.conf'), 'theirs');
    const before = await snapshot();
    const refused = write(first, second);
    await expect(refused).rejects.toThrow(ForeignChangeError);
    await expect(refused).rejects.toThrow(
      /^changed on the node since the last write: \/etc\/app\/own.conf: has sha256/,
    );
    expect(await snapshot()).toEqual(before);
    await write(first, second, { force: true });
    expect(await text('etc/app/own.conf')).toBe('two');
  });

  test('while it is written stays, and the write is undone', async () => {
    const { write, text, at } = await createTree();
    await write(emptyNodeConfig, first);
    const beforeStep = async (step: string) => {
      if (step === 'file /etc/app/own.conf') await writeFile(at('etc/app/own.conf'), 'theirs');
    };
    const refused = write(first, second, { beforeStep });
    await expect(refused).rejects.toThrow(/^changed on the node while it was written: \/etc\/app\/own.conf/);
    expect([await text('etc/app/own.conf'), await text('etc/becomes')]).toEqual(['theirs', 'file']);
  });

  test('before a write is what comes back after it, also a directory', async () => {
    const { write, snapshot, at } = await createTree();
    await mkdir(at('etc/dir'), { mode: 0o711 });
    const before = await snapshot();
    await write(emptyNodeConfig, second);
    expect((await stat(at('etc/dir'))).mode & 0o7777).toBe(0o750);
    await write(second, emptyNodeConfig);
    expect(await snapshot()).toEqual(before);
  });
});

describe('a write that can not be undone either', () => {
  test('reports both failures', async () => {
    const { target, write } = await createTree();
    const beforeStep = async (step: string) => {
      if (!step.startsWith('file ')) return;
      await writeFile(path.join(target.stateDir, 'write.json'), 'no record');
      throw new Error('no power');
    };
    const failed = write(emptyNodeConfig, first, { beforeStep });
    await expect(failed).rejects.toThrow(UndoError);
    await expect(failed).rejects.toMatchObject({
      message: 'first could not be written, nor the write undone',
      errors: [{ message: 'no power' }, { name: 'RecordError' }],
      cause: { message: 'no power' },
    });
  });

  test('but for labels says so, and has taken everything else back', async () => {
    const { write, snapshot } = await createTree();
    await write(emptyNodeConfig, first);
    const before = await snapshot();
    const relabel = () => Promise.reject(new Error('no policy'));
    const failed = write(first, second, { target: { relabel } });
    await expect(failed).rejects.toThrow(/^no policy; .*undone, but without the label/);
    await expect(failed).rejects.toMatchObject({
      errors: [{ message: 'no policy' }, expect.any(UnlabelledError)],
    });
    expect(await snapshot()).toEqual(before);
  });
});

test('labels are set once, for what was written in each tree', async () => {
  const { target, write, at } = await createTree();
  const labelled: [string, readonly string[]][] = [];
  const relabel = async (root: string, names: readonly string[]) => void labelled.push([root, names]);
  for (const name of ['staged/etc', 'staged/var']) await mkdir(at(name), { recursive: true });
  const { written } = await write(emptyNodeConfig, second, {
    target: { relabel, root: at('staged'), varRoot: target.root },
  });
  expect(labelled).toEqual([
    [at('staged'), written.filter((name) => name.startsWith('/etc/'))],
    [target.root, ['/var/new', '/var/new/file']],
  ]);
});

test('a staged deployment gets its /etc, the running root its /var and the record of both', async () => {
  const { target, write, text, at } = await createTree();
  await mkdir(at('staged/etc'), { recursive: true });
  const staged = { root: at('staged'), varRoot: target.root };
  await write(emptyNodeConfig, second, { target: staged });
  expect([await text('staged/etc/app/own.conf'), await text('var/new/file')]).toEqual(['two', 'new']);
  await expect(text('etc/app/own.conf')).rejects.toThrow('ENOENT');
  const managed = await readManagedPaths(target.root);
  expect([...managed.keys()]).toEqual(['/etc/app/own.conf', '/etc/becomes/below', '/etc/dir']);
  expect(managed.get('/etc/app/own.conf')).toEqual([
    await contentDigestAt(at('staged'), '/etc/app/own.conf'),
  ]);
});

test('the record knows what a path of /etc held and will hold until a write is whole, and then what it holds', async () => {
  const { target, write } = await createTree();
  await write(emptyNodeConfig, first);
  const old = await contentDigestAt(target.root, '/etc/app/own.conf');
  let meanwhile: readonly string[] | undefined;
  const beforeStep = async (step: string) => {
    if (step === 'label') meanwhile = (await readManagedPaths(target.root)).get('/etc/app/own.conf');
  };
  await write(first, second, { beforeStep });
  const now = await contentDigestAt(target.root, '/etc/app/own.conf');
  expect(meanwhile).toEqual([now, old]);
  const managed = await readManagedPaths(target.root);
  expect(managed.get('/etc/app/own.conf')).toEqual([now]);
  expect(managed.has('/etc/admin.conf')).toBe(false);
});

test('two names of one place are one path, and a link that goes is not followed', async () => {
  const { write, text, at } = await createTree();
  await symlink('/etc/real', at('etc/alias'));
  await mkdir(at('etc/real'));
  await write(emptyNodeConfig, config('aliased', { '/etc/alias/a': 'new' }));
  expect(await text('etc/real/a')).toBe('new');
  const linked = config('linked', {}, { links: link('/etc/way', 'real') });
  await write(emptyNodeConfig, linked);
  await write(linked, config('below', { '/etc/way/b': 'new' }));
  expect(await readdir(at('etc/real'))).toEqual(['a']);
  expect(await text('etc/way/b')).toBe('new');
});

test.each(['file /etc/app/own.conf', 'forget what was there'])(
  'a write that was killed before the step %j is undone before the next begins',
  async (killedBefore) => {
    const { target, write, snapshot, text } = await createTree();
    await write(emptyNodeConfig, first);
    // What a kill leaves on the disk. The write itself goes on to fail, and is undone where nobody looks any more.
    const left = `${target.root}.left`;
    const beforeStep = async (step: string) => {
      if (step !== killedBefore) return;
      await cp(target.root, left, { recursive: true, verbatimSymlinks: true });
      throw new Error('killed');
    };
    await expect(write(first, second, { beforeStep })).rejects.toThrow(/^killed$/);
    const before = await snapshot();
    await rm(target.root, { recursive: true });
    await rename(left, target.root);
    expect(await snapshot()).not.toEqual(before);

    expect((await write(first, second)).written).toContain('/etc/admin.conf');
    expect([await text('etc/admin.conf'), await text('etc/app/own.conf')]).toEqual(['admin', 'two']);
    await write(second, first);
    expect(await snapshot()).toEqual(before);
  },
);

test("a path of /etc is on record as Shale's before it is written", async () => {
  const { context, root } = await stepUnderTest();
  const { relabel, setPasswords } = context.ports;
  const { rendered } = standard('rendered-2', [{ path: '/etc/app.conf', content: 'new' }]);
  let onRecord: readonly string[] | undefined;

  await writeConfig(
    { root, stateDir: path.join(root, 'var/lib/shale'), relabel, setPasswords },
    { from: emptyNodeConfig, to: nodeConfigOf(rendered) },
    {
      signal: context.signal,
      beforeStep: async (step) => {
        if (step === 'file /etc/app.conf') onRecord = (await readManagedPaths(root)).get('/etc/app.conf');
      },
    },
  );

  expect(await readFile(path.join(root, 'etc/app.conf'), 'utf8')).toBe('new');
  expect(onRecord).toContain(await contentDigestAt(root, '/etc/app.conf'));
});
