import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { resolveInRoot } from './resolve-in-root.ts';

describe('resolveInRoot', () => {
  let root: string;

  beforeAll(async () => {
    root = await mkdtemp(path.join(tmpdir(), 'shale-root-'));
    await mkdir(path.join(root, 'var/home/core'), { recursive: true });
    await symlink('var/home', path.join(root, 'home'));
    await symlink('/var/home', path.join(root, 'absolute'));
    await symlink('../../../../var', path.join(root, 'var/up'));
    await symlink('loop', path.join(root, 'loop'));
    await symlink('/etc/passwd', path.join(root, 'last'));
  });
  afterAll(() => rm(root, { recursive: true }));

  it.each([
    ['/home/core/x', '/var/home/core/x'],
    ['/absolute/core/x', '/var/home/core/x'],
    ['/var/up/home/core', '/var/home/core'],
    ['/../../x', '/x'],
    ['/last', '/last'],
    ['/', '/'],
    ['/missing/x', undefined],
  ])('%s lies at %s', async (name, expected) => {
    const place = await resolveInRoot(root, name);
    expect(place === undefined ? undefined : path.join('/', path.relative(root, place))).toBe(expected);
  });

  it('follows as many links as the kernel, and no more', async () => {
    await symlink('var', path.join(root, 'link-1'));
    for (let links = 2; links <= 41; links += 1) {
      await symlink(`link-${links - 1}`, path.join(root, `link-${links}`));
    }
    expect(await resolveInRoot(root, '/link-40/x')).toBe(path.join(root, 'var/x'));
    await expect(resolveInRoot(root, '/link-41/x')).rejects.toThrow('more than 40 symbolic links');
  });

  it.each(['etc/passwd', ''])('refuses %j, which is relative', async (name) => {
    await expect(resolveInRoot(root, name)).rejects.toThrow('is not an absolute path');
  });

  it('gives up on a loop', async () => {
    await expect(resolveInRoot(root, '/loop/x')).rejects.toThrow('more than 40 symbolic links');
  });
});
