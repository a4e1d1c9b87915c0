import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { untouchedManagedPaths } from '../content/live/managed-etc.ts';
import { contentDigestAt } from '../files/read-tree.ts';
import { ABSENT } from '../files/tree-entry.ts';
import { RecordError } from './durable-json.ts';
import {
  intendManagedPaths,
  isManaged,
  readManagedPaths,
  settleManagedPaths,
  writeManagedPaths,
} from './managed-paths.ts';

describe('the record of managed paths', () => {
  let root: string;

  beforeEach(async () => {
    root = await mkdtemp(path.join(tmpdir(), 'shale-managed-'));
    await mkdir(path.join(root, 'etc'));
  });
  afterEach(() => rm(root, { recursive: true }));

  it('is empty before anything was written, and comes back as it was written', async () => {
    expect(await readManagedPaths(root)).toEqual(new Map());
    const managed = new Map([
      ['/etc/b', ['file 0644 0:0 sha256:1']],
      ['/etc/a', [ABSENT]],
    ]);
    await writeManagedPaths(root, managed);
    expect(await readManagedPaths(root)).toEqual(managed);
  });

  it('says so when it is damaged', async () => {
    await mkdir(path.join(root, 'var/lib/shale'), { recursive: true });
    await writeFile(path.join(root, 'var/lib/shale/managed-paths.json'), '{"version":1,"paths":{"etc":[]}}');
    await expect(readManagedPaths(root)).rejects.toThrow(RecordError);
  });

  it('counts what was there and what will be as Shale’s while a write is under way', () => {
    const before = new Map([['/etc/a', ['old']]]);
    const intended = intendManagedPaths(before, new Map([['/etc/a', ['new']]]));
    expect([isManaged(intended, '/etc/a', 'old'), isManaged(intended, '/etc/a', 'new')]).toEqual([
      true,
      true,
    ]);
    const settled = settleManagedPaths(intended);
    expect([isManaged(settled, '/etc/a', 'old'), isManaged(settled, '/etc/a', 'new')]).toEqual([false, true]);
  });

  it('tells what nobody touched since', async () => {
    await writeFile(path.join(root, 'etc/a'), 'shale');
    await writeFile(path.join(root, 'etc/b'), 'shale');
    const managed = new Map([
      ['/etc/a', [await contentDigestAt(root, '/etc/a')]],
      ['/etc/b', [await contentDigestAt(root, '/etc/b')]],
      ['/etc/c', [ABSENT]],
    ]);
    await writeFile(path.join(root, 'etc/b'), 'admin');
    expect([...(await untouchedManagedPaths(root, managed)).keys()]).toEqual(['/etc/a', '/etc/c']);
  });
});
