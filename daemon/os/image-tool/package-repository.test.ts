import { access, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect, onTestFinished, test } from 'vitest';
import { nodePaths } from '../../../api/names.ts';
import type { LayerItem } from '../../../image/layer/entry.ts';
import { deadline } from '../../../test/fixtures/patience.ts';
import { imageOf } from '../../../test/fixtures/step-context.ts';
import type { ImageSource } from '../ostree/image-source.ts';
import { removePackageRepository, withPackageRepository } from './package-repository.ts';

const IN_IMAGE = '/usr/share/rpm-ostree/extensions';
const REPOSITORY_FILE = 'etc/yum.repos.d/coreos-extensions.repo';
const file = (name: string, text: string): LayerItem => ({
  type: 'file',
  path: name,
  mode: 0o600,
  uid: 0,
  gid: 0,
  content: Buffer.from(text),
});

function sourceOf(...layers: readonly (readonly LayerItem[])[]): ImageSource {
  return {
    open: async () => ({
      labels: {},
      layers: layers.map((items, index) => ({
        digest: `sha256:${index}`,
        diffId: `sha256:${index}`,
        size: 1,
        read: () => Readable.from(items),
      })),
    }),
  } as unknown as ImageSource;
}

async function hostWith(...layers: readonly (readonly LayerItem[])[]) {
  const root = await mkdtemp(path.join(tmpdir(), 'repository-'));
  onTestFinished(() => rm(root, { recursive: true }));
  const directory = path.join(root, nodePaths.state, 'extensions');
  const options = {
    root,
    commandPath: (place: string) => path.join('/host', path.relative(root, place)),
    source: sourceOf(...layers),
  };
  const signal = { now: deadline(10_000) };
  const use = <T>(work: () => Promise<T>) => withPackageRepository(options, imageOf('e'), work, signal.now);
  const isClean = async () => {
    await expect(access(directory)).rejects.toThrow('ENOENT');
    await expect(access(path.join(root, REPOSITORY_FILE))).rejects.toThrow('ENOENT');
  };
  return { root, directory, use, isClean, signal };
}
const read = (directory: string, name: string) => readFile(path.join(directory, name), 'utf8');

describe('the repository of an image', () => {
  test('is known to the host while it is used, and only then', async () => {
    const { root, directory, use, isClean } = await hostWith([
      { type: 'directory', path: `${IN_IMAGE}/repodata/`, mode: 0o700, uid: 0, gid: 0 },
      file(`${IN_IMAGE}/repodata/repomd.xml`, 'metadata'),
      file('/etc/passwd', 'not of the repository'),
      file(`${IN_IMAGE}x/other`, 'not of the repository'),
      { type: 'symlink', path: '/etc/link', target: 'x', uid: 0, gid: 0 },
      { type: 'directory', path: `${IN_IMAGE}/Packages`, mode: 0o700, uid: 0, gid: 0 },
    ]);
    const result = await use(async () => {
      expect(await read(directory, 'repodata/repomd.xml')).toBe('metadata');
      expect((await readdir(directory, { recursive: true })).sort()).toEqual([
        'Packages',
        'repodata',
        'repodata/repomd.xml',
      ]);
      expect((await stat(path.join(directory, 'Packages'))).mode & 0o777).toBe(0o755);
      expect(await read(root, REPOSITORY_FILE)).toBe(
        `[coreos-extensions]\nname=coreos-extensions\nenabled=1\nmetadata_expire=1m\nbaseurl=file:///host${nodePaths.state}/extensions\ngpgcheck=0\nskip_if_unavailable=False\n`,
      );
      return 'installed';
    });
    expect(result).toBe('installed');
    await isClean();
  });

  test('has what the layers have together', async () => {
    const { directory, use } = await hostWith(
      [
        file(`${IN_IMAGE}/a.rpm`, 'one'),
        file(`${IN_IMAGE}/b.rpm`, 'b'),
        file(`${IN_IMAGE}/old/c.rpm`, 'c'),
        { type: 'hardlink', path: `${IN_IMAGE}/link.rpm`, target: `${IN_IMAGE}/a.rpm` },
      ],
      [
        file(`${IN_IMAGE}/a.rpm`, 'two'),
        { type: 'whiteout', path: `${IN_IMAGE}/b.rpm` },
        { type: 'opaque', path: `${IN_IMAGE}/old` },
      ],
    );
    await use(async () => {
      expect((await readdir(directory)).sort()).toEqual(['a.rpm', 'link.rpm', 'old']);
      expect(await read(directory, 'a.rpm')).toBe('two');
      expect(await read(directory, 'link.rpm')).toBe('one');
      expect(await readdir(path.join(directory, 'old'))).toEqual([]);
    });
  });

  test('has files in pieces, in place of what a layer below has', async () => {
    const { directory, use } = await hostWith(
      [file(`${IN_IMAGE}/a.rpm`, 'longer'), file(`${IN_IMAGE}/d/x`, 'x')],
      [
        {
          ...file(`${IN_IMAGE}/a.rpm`, ''),
          content: Readable.from([Buffer.from('t'), Buffer.from('wo')]),
        } as LayerItem,
        file(`${IN_IMAGE}/d`, 'now a file'),
      ],
    );
    await use(async () => {
      expect(await read(directory, 'a.rpm')).toBe('two');
      expect(await read(directory, 'd')).toBe('now a file');
      expect((await stat(path.join(directory, 'a.rpm'))).mode & 0o777).toBe(0o644);
    });
  });

  test('is not read to the end when the daemon is to end', async () => {
    const ending = new AbortController();
    const { use, isClean, signal } = await hostWith([
      file(`${IN_IMAGE}/a.rpm`, 'a'),
      file(`${IN_IMAGE}/b.rpm`, 'b'),
    ]);
    signal.now = ending.signal;
    ending.abort(new Error('ending'));
    await expect(use(async () => undefined)).rejects.toThrow('ending');
    await isClean();
  });

  test('is taken away when its use fails', async () => {
    const { use, isClean } = await hostWith([file(`${IN_IMAGE}/a.rpm`, 'a')]);
    await expect(use(() => Promise.reject(new Error('no such package')))).rejects.toThrow('no such package');
    await isClean();
  });

  test('replaces one that a daemon has left', async () => {
    const { root, directory, use } = await hostWith([file(`${IN_IMAGE}/a.rpm`, 'a')]);
    await mkdir(directory, { recursive: true });
    await writeFile(path.join(directory, 'left.rpm'), '');
    await mkdir(path.dirname(path.join(root, REPOSITORY_FILE)), { recursive: true });
    await writeFile(path.join(root, REPOSITORY_FILE), 'left');
    await use(async () => expect(await readdir(directory)).toEqual(['a.rpm']));
  });

  test.each<[string, LayerItem, string]>([
    [
      'a link',
      { type: 'symlink', path: `${IN_IMAGE}/repodata`, target: '/etc', uid: 0, gid: 0 },
      'is a symlink outside of the repository',
    ],
    [
      'a hard link out of it',
      { type: 'hardlink', path: `${IN_IMAGE}/shadow`, target: '/etc/shadow' },
      'is a hardlink outside of the repository',
    ],
    ['nothing', file(`${IN_IMAGE}/../other`, 'x'), 'expected a package repository'],
  ])('with %s is refused', async (_name, item, message) => {
    const { use, isClean } = await hostWith([item]);
    await expect(use(async () => undefined)).rejects.toThrow(message);
    await isClean();
  });

  test('of no host is nothing to remove', async () => {
    const { root, isClean } = await hostWith();
    await removePackageRepository(root);
    await isClean();
  });
});
