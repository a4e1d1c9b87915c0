import { link, mkdir, readFile, readlink, stat, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { emptyNodeConfig, type NodeConfig } from '../../../machineconfig/node-config.ts';
import { config, createTree, OWN, link as symbolicLink } from '../../../test/fixtures/config-tree.ts';
import { unitsOf } from '../../../test/fixtures/configs.ts';
import { deadline } from '../../../test/fixtures/patience.ts';
import { contentDigestAt } from '../../files/read-tree.ts';
import { readManagedPaths, readStatePaths, writeManagedPaths } from '../../records/managed-paths.ts';
import type { ManagedContent } from '../entries/desired-tree.ts';
import { readOriginals } from './originals.ts';
import { settleStateContent } from './state-content.ts';
import { type ContentWrite, checkContent, writeContent } from './write-content.ts';

const byImage = (of: NodeConfig): ManagedContent => ({ delivery: 'Layered', config: of });
const directory = (at: string, mode: number) => new Map([[at, { path: at, mode, ...OWN }]]);
const nothing = byImage(emptyNodeConfig);
const signal = deadline(20_000);

/** A tree, and what an image's content does to it: from one config to the next, and whatever none has any more goes. */
async function tree() {
  const created = await createTree();
  const { at, target } = created;
  const bring = async (
    from: ManagedContent | undefined,
    to: ManagedContent,
    more: Partial<ContentWrite> = {},
  ) => {
    return writeContent(target, { from, to, force: true, ...more }, { signal });
  };
  const settle = (content: ManagedContent | undefined) => settleStateContent(target, content, signal);
  const put = async (name: string, text: string) => {
    await mkdir(path.dirname(at(name)), { recursive: true });
    await writeFile(at(name), text);
  };
  const text = (name: string) => readFile(at(name), 'utf8').catch(() => undefined);
  const mode = async (name: string) => (await stat(at(name))).mode & 0o7777;
  return { ...created, bring, settle, put, text, mode };
}

test('the record names the config that standard mode wrote to the running root, and no other', async () => {
  const { target } = await tree();
  const write = async (to: ManagedContent, root: Partial<typeof target> = {}) => {
    await writeContent({ ...target, ...root }, { from: undefined, to, force: true }, { signal });
    return (await readOriginals(target.stateDir)).config;
  };
  const standard: ManagedContent = { delivery: 'Standard', config: config('a', { '/etc/app.conf': 'a' }) };
  expect(await write(standard)).toBe('a');
  const other: ManagedContent = { delivery: 'Standard', config: config('b', { '/etc/app.conf': 'b' }) };
  const { target: staged } = await createTree();
  expect(await write(other, { root: staged.root, varRoot: target.root })).toBe('a');
  expect(await write(byImage(config('b', { '/etc/app.conf': 'b' })))).toBeUndefined();
});

describe('state that an image brings', () => {
  test('takes over what is there, and gives it back when no config has it any more', async () => {
    const { at, bring, mode, put, target, text } = await tree();
    await put('var/lib/own.conf', "the node's");
    await mkdir(at('var/lib/dir'), { mode: 0o755 });
    const content = byImage(
      config(
        'a',
        { '/var/lib/own.conf': 'ours', '/var/lib/new/file': 'ours' },
        { directories: directory('/var/lib/dir', 0o700) },
      ),
    );
    await bring(nothing, content);
    expect([
      await text('var/lib/own.conf'),
      await text('var/lib/new/file'),
      await mode('var/lib/dir'),
    ]).toEqual(['ours', 'ours', 0o700]);
    await bring(content, nothing);
    expect([
      await text('var/lib/own.conf'),
      await text('var/lib/new/file'),
      await mode('var/lib/dir'),
    ]).toEqual(["the node's", undefined, 0o755]);
    await expect(stat(at('var/lib/new'))).rejects.toThrow('ENOENT');
    expect((await readOriginals(target.stateDir)).paths.size).toBe(0);
  });

  test('that equals what the node had stays the node’s', async () => {
    const { bring, put, settle, text } = await tree();
    await put('var/lib/same', 'same');
    const content = byImage(config('a', { '/var/lib/same': 'same' }));
    await bring(nothing, content);
    await bring(content, nothing);
    expect(await settle(nothing)).toEqual({ removed: [], left: [] });
    expect(await text('var/lib/same')).toBe('same');
  });

  test('changes no other name of a file that it takes over', async () => {
    const { at, bring, put, text } = await tree();
    await put('var/lib/one', 'data');
    await link(at('var/lib/one'), at('var/lib/other'));
    await bring(nothing, byImage(config('a', { '/var/lib/one': 'ours' })));
    expect([await text('var/lib/one'), await text('var/lib/other')]).toEqual(['ours', 'data']);
  });

  test('deletes no directory with data in it for a link or a file, and says which before anything is changed', async () => {
    const { at, bring, put, snapshot, target } = await tree();
    await put('var/lib/isdir/data', 'data');
    const before = await snapshot();
    for (const content of [
      config('a', { '/var/lib/other': 'x' }, { links: symbolicLink('/var/lib/isdir', 'other') }),
      config('b', { '/var/lib/isdir': 'x', '/var/lib/other': 'x' }),
    ]) {
      const write = { from: nothing, to: byImage(content), force: true };
      await expect(checkContent(target, write, signal)).rejects.toThrow(
        '/var/lib/isdir: is a directory with /var/lib/isdir/data in it',
      );
      await expect(bring(nothing, byImage(content))).rejects.toThrow('/var/lib/isdir/data');
      expect(await snapshot()).toEqual(before);
      await expect(stat(at('var/lib/other'))).rejects.toThrow('ENOENT');
    }
  });

  test('replaces a link, and a file where a directory has to be', async () => {
    const { at, bring, put, text } = await tree();
    await put('var/lib/target', 'data');
    await symlink('target', at('var/lib/linked'));
    await put('var/lib/becomes', 'file');
    const content = byImage(
      config('a', { '/var/lib/linked': 'ours' }, { directories: directory('/var/lib/becomes', 0o755) }),
    );
    await bring(nothing, content);
    expect([await text('var/lib/linked'), await text('var/lib/target')]).toEqual(['ours', 'data']);
    expect((await stat(at('var/lib/becomes'))).isDirectory()).toBe(true);
    await bring(content, nothing);
    expect([await text('var/lib/linked'), await text('var/lib/becomes')]).toEqual(['data', 'file']);
  });

  test('of a target that the host rolled back from goes by the record, and its originals come back', async () => {
    const { bring, put, settle, target, text } = await tree();
    await put('var/lib/own.conf', "the node's");
    const running = byImage(config('running', { '/var/lib/kept': 'running' }));
    const failed = byImage(config('failed', { '/var/lib/own.conf': 'failed', '/var/lib/kept': 'failed' }));
    await bring(nothing, running);
    await bring(running, failed);
    // The next daemon knows only what runs again.
    await bring(running, running);
    expect(await settle(running)).toEqual({ removed: ['/var/lib/own.conf'], left: [] });
    expect([await text('var/lib/own.conf'), await text('var/lib/kept')]).toEqual(["the node's", 'running']);
    expect([...((await readStatePaths(target.root)) ?? [])].map(([name]) => name)).toEqual(['/var/lib/kept']);
  });

  test('of an image that is booted first came with it, as far as it is there', async () => {
    const { bring, put, text } = await tree();
    await put('var/lib/by-fragment', 'ours');
    await put('var/lib/own', "the node's");
    const content = byImage(
      config('a', { '/var/lib/by-fragment': 'ours', '/var/lib/own': 'ours', '/var/lib/big': 'b' }),
    );
    await bring(undefined, content, { isBooted: true, scope: 'state' });
    expect([await text('var/lib/own'), await text('var/lib/big')]).toEqual(['ours', 'b']);
    await bring(content, nothing);
    expect([await text('var/lib/by-fragment'), await text('var/lib/own')]).toEqual([undefined, "the node's"]);
  });
});

describe('what an image brings to /etc', () => {
  test('takes the place of what somebody has made of a path before, and gives it back', async () => {
    const { bring, text } = await tree();
    const content = byImage(config('a', { '/etc/admin.conf': 'ours' }));
    await bring(nothing, content);
    expect(await text('etc/admin.conf')).toBe('ours');
    await bring(content, nothing);
    expect(await text('etc/admin.conf')).toBe('admin');
  });

  test('is the image’s where the deployment was made so: a link of a unit that was disabled comes back', async () => {
    const { at, bring, put } = await tree();
    const wants = 'systemd/system/multi-user.target.wants/os.service';
    await put('usr/lib/systemd/system/os.service', '[Install]\nWantedBy=multi-user.target\n');
    await mkdir(path.dirname(at(`usr/etc/${wants}`)), { recursive: true });
    await symlink('/usr/lib/systemd/system/os.service', at(`usr/etc/${wants}`));
    const content = byImage(config('a', {}, { units: unitsOf({ name: 'os.service', enabled: false }) }));
    await bring(nothing, content);
    await bring(content, nothing);
    expect(await readlink(at(`etc/${wants}`))).toBe('/usr/lib/systemd/system/os.service');
  });

  test('goes back, in a live update, to what the image that comes has', async () => {
    const { at, bring, put, target, text } = await tree();
    await put('usr/etc/gone', 'of the image that is booted');
    await put('etc/gone', 'ours');
    await put('usr/etc/kept', 'of the image that is booted');
    await put('etc/kept', 'ours');
    await put('run/staged/usr/etc/kept', 'of the image that comes');
    const content = byImage(config('a', { '/etc/gone': 'ours', '/etc/kept': 'ours' }));
    const live = { ...target, imageRoot: at('run/staged') };
    await writeContent(live, { from: content, to: nothing, force: true }, { signal });
    expect([await text('etc/gone'), await text('etc/kept')]).toEqual([undefined, 'of the image that comes']);
    await bring(content, nothing);
    expect(await text('etc/gone')).toBe('of the image that is booted');
  });

  test('stays Shale’s, in a live update, where it went to what the image that comes has', async () => {
    const { at, put, target } = await tree();
    const { root } = target;
    await put('usr/etc/gone', 'of the image that is booted');
    await put('usr/etc/kept', 'of the image that is booted');
    // As the apply of the image's tree has left it.
    for (const place of ['etc/kept', 'run/staged/usr/etc/kept']) await put(place, 'of the image that comes');
    const names = ['/etc/gone', '/etc/kept'];
    const applied = new Map(
      await Promise.all(names.map(async (name) => [name, [await contentDigestAt(root, name)]] as const)),
    );
    await writeManagedPaths(root, applied);
    const content = byImage(config('a', { '/etc/gone': 'ours', '/etc/kept': 'ours' }));
    const live = { ...target, imageRoot: at('run/staged') };
    const coming = byImage(config('b', { '/etc/new': 'ours' }));
    await writeContent(live, { from: content, to: coming, force: true }, { signal });
    const managed = await readManagedPaths(root);
    expect(names.map((name) => managed.get(name))).toEqual(names.map((name) => applied.get(name)));
  });

  test('is left alone where only the state is asked for, and /usr always', async () => {
    const { bring, text } = await tree();
    const content = byImage(
      config('a', { '/etc/admin.conf': 'ours', '/usr/share/a': 'ours', '/var/lib/a': 'ours' }),
    );
    await bring(nothing, content, { scope: 'state' });
    expect([await text('etc/admin.conf'), await text('usr/share/a'), await text('var/lib/a')]).toEqual([
      'admin',
      undefined,
      'ours',
    ]);
    await bring(nothing, content, { scope: 'etc' });
    expect([await text('etc/admin.conf'), await text('usr/share/a')]).toEqual(['ours', undefined]);
  });
});

test('an edit that a repair undoes is nobody’s original', async () => {
  const { bring, put, text } = await tree();
  const content = byImage(config('a', { '/var/lib/a': 'ours' }));
  await bring(nothing, content);
  await put('var/lib/a', 'edited');
  await bring(content, content);
  expect(await text('var/lib/a')).toBe('ours');
  await bring(content, nothing);
  expect(await text('var/lib/a')).toBeUndefined();
});

test('a repair removes a file on the way to a path, which nothing else does', async () => {
  const { bring, put, text } = await tree();
  const content = byImage(config('a', { '/var/lib/app/conf': 'ours' }));
  await put('var/lib/app', 'in the way');
  await expect(bring(nothing, content)).rejects.toThrow('/var/lib/app is no directory');
  await bring(content, content, { clearsObstacles: true });
  expect(await text('var/lib/app/conf')).toBe('ours');
});
