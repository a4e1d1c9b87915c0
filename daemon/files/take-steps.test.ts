import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import {
  link,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { recordSyncs } from '../../test/fixtures/synced-files.ts';
import { HostDirectory } from './host-directory.ts';
import { takeSteps, type WriteStep } from './write-step.ts';

describe('takeSteps', () => {
  let dir: string;
  const signal = new AbortController().signal;
  const owner = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
  const apply = (...steps: WriteStep[]) => takeSteps({ root: dir }, steps, { signal });

  async function file(name: string, content: string, mode = 0o644): Promise<WriteStep> {
    const source = path.join(dir, 'source');
    await writeFile(source, content);
    return {
      kind: 'copy',
      name,
      source,
      sha256: createHash('sha256').update(content).digest('hex'),
      mode,
      ...owner,
    };
  }

  beforeEach(async () => {
    dir = await mkdtemp(path.join(tmpdir(), 'shale-apply-'));
    await mkdir(path.join(dir, 'etc'));
  });
  afterEach(() => rm(dir, { recursive: true }));

  it('never writes through a hard link', async () => {
    const [repository, deployed] = [path.join(dir, 'object'), path.join(dir, 'etc/f')];
    await writeFile(repository, 'old');
    await link(repository, deployed);
    await apply(await file('/etc/f', 'new', 0o600));
    expect(await readFile(repository, 'utf8')).toBe('old');
    expect(await readFile(deployed, 'utf8')).toBe('new');
    expect((await stat(deployed)).mode & 0o7777).toBe(0o600);
  });

  it.each([
    ['EBUSY', 'rejects'],
    ['EACCES', 'rejects'],
    ['ENOTEMPTY', 'resolves'],
    ['EEXIST', 'resolves'],
    ['ENOENT', 'resolves'],
    ['ENOTDIR', 'resolves'],
  ] as const)('a directory that can not be removed with %s %s', async (code, how) => {
    await mkdir(path.join(dir, 'etc/d'));
    // Such as a file system that is mounted there, which a test without root can't have.
    const failing = vi
      .spyOn(HostDirectory.prototype, 'removeDirectory')
      .mockRejectedValue(Object.assign(new Error(code), { code }));
    onTestFinished(() => failing.mockRestore());
    const removed = apply({ kind: 'remove directory', name: '/etc/d', evenIfNotEmpty: 'leave' });
    if (how === 'resolves') await expect(removed).resolves.toBeUndefined();
    else await expect(removed).rejects.toMatchObject({ code });
  });

  it('replaces a link and not what it leads to', async () => {
    await writeFile(path.join(dir, 'outside'), 'outside');
    await symlink('../outside', path.join(dir, 'etc/f'));
    await apply(await file('/etc/f', 'new'));
    expect(await readFile(path.join(dir, 'outside'), 'utf8')).toBe('outside');
  });

  it('refuses a parent that is a link, and a path outside', async () => {
    await mkdir(path.join(dir, 'outside'));
    await symlink('../outside', path.join(dir, 'etc/d'));
    await expect(apply(await file('/etc/d/x', 'new'))).rejects.toThrow('expected a directory');
    await expect(apply(await file('/etc/../outside/x', 'new'))).rejects.toThrow(
      'not an absolute path in its simplest form',
    );
    expect(await readdir(path.join(dir, 'outside'))).toEqual([]);
  });

  it('refuses a source that has changed, and leaves nothing behind', async () => {
    const change = await file('/etc/f', 'planned');
    await writeFile(path.join(dir, 'source'), 'other');
    await expect(apply(change)).rejects.toThrow('expected sha256:');
    expect(await readdir(path.join(dir, 'etc'))).toEqual([]);
  });

  it('takes over from a write that was killed', async () => {
    await writeFile(path.join(dir, 'etc/.shale-new.f'), 'half');
    await apply(await file('/etc/f', 'new'));
    expect(await readdir(path.join(dir, 'etc'))).toEqual(['f']);
  });

  it('keeps a directory in which something is left, and removes none that has become a file', async () => {
    await mkdir(path.join(dir, 'etc/d'));
    await writeFile(path.join(dir, 'etc/d/admin'), 'x');
    await writeFile(path.join(dir, 'etc/f'), 'x');
    await apply(
      { kind: 'remove directory', name: '/etc/d', evenIfNotEmpty: 'leave' },
      { kind: 'remove directory', name: '/etc/f', evenIfNotEmpty: 'leave' },
      { kind: 'remove', name: '/etc/gone/x' },
    );
    expect(await readdir(path.join(dir, 'etc'))).toEqual(['d', 'f']);
  });

  it('makes a directory in place of a file, and gives one that is there its mode', async () => {
    await mkdir(path.join(dir, 'etc/d'), { mode: 0o755 });
    await writeFile(path.join(dir, 'etc/d/kept'), 'x');
    await writeFile(path.join(dir, 'etc/f'), 'x');
    await symlink('d', path.join(dir, 'etc/l'));
    const directory = (name: string): WriteStep => ({
      kind: 'directory',
      name,
      mode: 0o700,
      replaces: true,
      ...owner,
    });
    await apply(directory('/etc/d'), directory('/etc/f'), directory('/etc/l'));
    for (const name of ['d', 'f', 'l']) {
      const stats = await lstat(path.join(dir, 'etc', name));
      expect([name, stats.isDirectory(), stats.mode & 0o777]).toEqual([name, true, 0o700]);
    }
    expect(await readdir(path.join(dir, 'etc/d'))).toEqual(['kept']);
  });

  it('makes links, and removes what is as it was planned', async () => {
    await mkdir(path.join(dir, 'etc/empty'));
    await mkdir(path.join(dir, 'etc/grown'));
    await writeFile(path.join(dir, 'etc/f'), 'x');
    await apply(
      { kind: 'symlink', name: '/etc/l', target: 'f', ...owner },
      { kind: 'remove directory', name: '/etc/empty', evenIfNotEmpty: 'leave' },
      { kind: 'remove', name: '/etc/f' },
      { kind: 'remove', name: '/etc/grown' },
      { kind: 'remove directory', name: '/etc/none', evenIfNotEmpty: 'leave' },
    );
    expect(await readdir(path.join(dir, 'etc'))).toEqual(['grown', 'l']);
    expect(await readlink(path.join(dir, 'etc/l'))).toBe('f');
  });

  it('removes nothing through what has become a link, and fails of what can not be looked at', async () => {
    await mkdir(path.join(dir, 'outside'));
    await writeFile(path.join(dir, 'outside/x'), 'x');
    await symlink('../outside', path.join(dir, 'etc/d'));
    await apply({ kind: 'remove', name: '/etc/d/x' });
    expect(await readdir(path.join(dir, 'outside'))).toEqual(['x']);
    const unreachable: WriteStep = { kind: 'remove', name: `/etc/${'x'.repeat(300)}/y` };
    await expect(apply(unreachable)).rejects.toThrow('ENAMETOOLONG');
  });

  it('has each step durable before the next', async () => {
    await mkdir(path.join(dir, 'etc/d'));
    const synced = await recordSyncs();
    await apply(
      { kind: 'symlink', name: '/etc/d/l', target: 'f', ...owner },
      { kind: 'remove', name: '/etc/d/l' },
      await file('/etc/f', 'new'),
    );
    const [d, etc] = [path.join(dir, 'etc/d'), path.join(dir, 'etc')];
    expect(synced).toEqual([d, d, path.join(etc, '.shale-new.f'), etc]);
  });

  it('tells of each step before it is taken, and stops between steps', async () => {
    const stop = new AbortController();
    const seen: boolean[] = [];
    const changes: WriteStep[] = [
      { kind: 'directory', name: '/etc/a', mode: 0o755, ...owner },
      { kind: 'directory', name: '/etc/b', mode: 0o755, ...owner },
    ];
    const beforeStep = async (step: WriteStep) => {
      seen.push(existsSync(path.join(dir, step.name)));
      stop.abort(new Error('shutting down'));
    };
    await expect(takeSteps({ root: dir }, changes, { beforeStep, signal: stop.signal })).rejects.toThrow(
      'shutting down',
    );
    expect(seen).toEqual([false]);
    expect(await readdir(path.join(dir, 'etc'))).toEqual(['a']);
  });
});
