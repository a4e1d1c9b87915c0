import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { link, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { TreeChange } from '../tree/tree-change.ts';
import { applyTreeChanges } from './apply-tree-changes.ts';

describe('applyTreeChanges', () => {
  let dir: string;
  const signal = new AbortController().signal;
  const owner = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
  const apply = (...changes: TreeChange[]) => applyTreeChanges(dir, changes, { signal });

  async function file(name: string, content: string, mode = 0o644): Promise<TreeChange> {
    const source = path.join(dir, 'source');
    await writeFile(source, content);
    return {
      kind: 'file',
      path: name,
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
      { kind: 'remove', path: '/etc/d', was: 'directory' },
      { kind: 'remove', path: '/etc/f', was: 'directory' },
      { kind: 'remove', path: '/etc/gone/x', was: 'other' },
    );
    expect(await readdir(path.join(dir, 'etc'))).toEqual(['d', 'f']);
  });

  it('tells of each step before it is taken, and stops between steps', async () => {
    const stop = new AbortController();
    const seen: boolean[] = [];
    const changes: TreeChange[] = [
      { kind: 'directory', path: '/etc/a', mode: 0o755, ...owner },
      { kind: 'directory', path: '/etc/b', mode: 0o755, ...owner },
    ];
    const beforeStep = async (step: TreeChange) => {
      seen.push(existsSync(path.join(dir, step.path)));
      stop.abort(new Error('shutting down'));
    };
    await expect(applyTreeChanges(dir, changes, { beforeStep, signal: stop.signal })).rejects.toThrow(
      'shutting down',
    );
    expect(seen).toEqual([false]);
    expect(await readdir(path.join(dir, 'etc'))).toEqual(['a']);
  });
});
