import { lstat, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { HostTree } from '../../files/host-tree.ts';
import { ABSENT, contentDigest, readTreeEntry } from '../../files/tree-entry.ts';
import { takeSteps, type WriteStep } from '../../files/write-step.ts';
import { noLabels } from '../../host/selinux-labels.ts';
import { readManagedPaths } from '../../records/managed-paths.ts';
import { keepOriginal, readOriginals } from './originals.ts';
import {
  closeWriteLog,
  finishOrUndoWrite,
  NoRoomError,
  openWriteLog,
  requireRoom,
  UnlabelledError,
  type WriteTarget,
} from './write-log.ts';

const OWN = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };

const file = (name: string, text: string): WriteStep => ({
  kind: 'file',
  name,
  contents: Buffer.from(text),
  mode: 0o644,
  ...OWN,
});
const directory = (name: string): WriteStep => ({ kind: 'directory', name, mode: 0o755, ...OWN });
const link = (name: string, to: string): WriteStep => ({ kind: 'symlink', name, target: to, ...OWN });
const remove = (name: string): WriteStep => ({ kind: 'remove', name });
const removeDirectory = (name: string): WriteStep => ({
  kind: 'remove directory',
  name,
  evenIfNotEmpty: 'leave',
});

let target: WriteTarget;
const at = (name: string) => path.join(target.root, name);
const text = (name: string) => readFile(at(name), 'utf8');
const put = (name: string, content: string) => writeFile(at(name), content, { mode: 0o644 });
const exists = async (name: string) => (await readTreeEntry(at(name))) !== undefined;

beforeEach(async () => {
  const root = await mkdtemp(path.join(tmpdir(), 'shale-write-log-'));
  target = {
    root,
    stateDir: path.join(root, 'var/lib/shale'),
    setPasswords: () => Promise.reject(new Error('no password was to be set')),
    relabel: noLabels,
  };
  for (const name of ['etc', 'var']) await mkdir(at(name));
});
afterEach(() => rm(target.root, { recursive: true }));

const before = {
  originals: { paths: new Map([['/etc/kept', { kind: 'copy' } as const]]), made: new Set(['/etc/made']) },
  state: new Map(),
  managed: new Map([['/etc/kept', ['file 0644 0:0 sha256:x']]]),
};

/** Logs the steps and takes those of them that a killed daemon took. */
async function interrupted(steps: readonly WriteStep[], taken = steps.length, in_ = target): Promise<void> {
  const after = new Map<string, string>();
  for (const { kind, name } of steps) {
    if (kind === 'remove' || kind === 'remove directory') after.set(name, ABSENT);
  }
  // What a file or link will be is known by its digest: written to a tree of its own first.
  const model = await mkdtemp(path.join(tmpdir(), 'shale-write-log-model-'));
  for (const step of steps) {
    if (step.kind !== 'file' && step.kind !== 'symlink') continue;
    const name = `/${path.basename(step.name)}`;
    await takeSteps({ root: model }, [{ ...step, name }]);
    after.set(step.name, contentDigest(await readTreeEntry(path.join(model, name))));
  }
  await rm(model, { recursive: true });
  await openWriteLog(in_, { steps, after, passwords: [] }, before);
  await using tree = new HostTree(in_);
  for (const step of steps.slice(0, taken)) {
    await takeSteps(tree.roots, [step]);
  }
}

describe('a write that was interrupted', () => {
  const steps = [
    remove('/etc/gone'),
    removeDirectory('/etc/empty'),
    directory('/etc/new'),
    file('/etc/new/file', 'new'),
    file('/etc/old', 'new'),
    link('/etc/was-file', 'old'),
    remove('/etc/becomes'),
    directory('/etc/becomes'),
    file('/etc/becomes/file', 'new'),
  ];

  test.each(Array.from({ length: steps.length + 1 }, (_, taken) => taken))(
    'is undone whole after %d of its steps',
    async (taken) => {
      for (const name of ['gone', 'old', 'was-file', 'becomes']) await put(`/etc/${name}`, `old ${name}`);
      await mkdir(at('/etc/empty'), { mode: 0o700 });
      await interrupted(steps, taken);

      expect(await finishOrUndoWrite(target)).toBe('undone');

      for (const name of ['gone', 'old', 'was-file', 'becomes']) {
        expect(await text(`/etc/${name}`)).toBe(`old ${name}`);
        expect((await stat(at(`/etc/${name}`))).mode & 0o7777).toBe(0o644);
      }
      expect((await stat(at('/etc/empty'))).mode & 0o7777).toBe(0o700);
      expect((await readdir(at('/etc'))).toSorted()).toEqual(['becomes', 'empty', 'gone', 'old', 'was-file']);
      expect(await readManagedPaths(target.root)).toEqual(before.managed);
      expect(await readOriginals(target.stateDir)).toEqual(before.originals);
      expect(await finishOrUndoWrite(target)).toBe('nothing');
    },
  );

  test('leaves nothing of a step that was killed in the middle', async () => {
    await put('/etc/old', 'old');
    await interrupted([file('/etc/old', 'new')], 0);
    const [temporary] = await temporaryNamesOf('/etc/old');
    await put(`/etc/${temporary}`, 'half of it');
    await finishOrUndoWrite(target);
    expect(await readdir(at('/etc'))).toEqual(['old']);
  });

  test('does not touch what is as it was', async () => {
    await put('/etc/old', 'old');
    const { ino } = await lstat(at('/etc/old'));
    await interrupted([file('/etc/old', 'new')], 0);
    await finishOrUndoWrite(target);
    expect((await lstat(at('/etc/old'))).ino).toBe(ino);
  });

  test('leaves what somebody else has written since', async () => {
    await put('/etc/old', 'old');
    await put('/etc/none', 'old');
    await interrupted([file('/etc/old', 'new'), file('/etc/added', 'new'), remove('/etc/none')]);
    await put('/etc/old', 'admin');
    await put('/etc/added', 'admin');
    await put('/etc/none', 'admin');
    await finishOrUndoWrite(target);
    expect([await text('/etc/old'), await text('/etc/added'), await text('/etc/none')]).toEqual([
      'admin',
      'admin',
      'admin',
    ]);
  });

  test('leaves a directory in which somebody else has put something', async () => {
    await interrupted([directory('/etc/new'), file('/etc/new/file', 'new')]);
    await put('/etc/new/other', 'admin');
    await finishOrUndoWrite(target);
    expect(await readdir(at('/etc/new'))).toEqual(['other']);
  });

  test('goes on where a parent has become something else', async () => {
    await mkdir(at('/etc/dir'));
    await put('/etc/dir/file', 'old');
    await put('/etc/last', 'old');
    await interrupted([file('/etc/dir/file', 'new'), file('/etc/last', 'new')]);
    await rm(at('/etc/dir'), { recursive: true });
    await put('/etc/dir', 'admin');
    await finishOrUndoWrite(target);
    expect([await text('/etc/dir'), await text('/etc/last')]).toEqual(['admin', 'old']);
  });

  test('gives a directory its former mode', async () => {
    await mkdir(at('/etc/dir'), { mode: 0o700 });
    await interrupted([directory('/etc/dir')]);
    expect((await stat(at('/etc/dir'))).mode & 0o7777).toBe(0o755);
    await finishOrUndoWrite(target);
    expect((await stat(at('/etc/dir'))).mode & 0o7777).toBe(0o700);
  });

  test('of a staged deployment that was deleted is undone in the state that all deployments share', async () => {
    const staged = { ...target, root: at('staged'), varRoot: target.root };
    await mkdir(path.join(staged.root, 'etc'), { recursive: true });
    await put('/var/state', 'old');
    await put('/etc/a', 'of the running root');
    await interrupted([file('/etc/a', 'new'), file('/var/state', 'new')], 2, staged);
    expect(await text('/var/state')).toBe('new');
    await rm(staged.root, { recursive: true });
    await finishOrUndoWrite(target);
    expect(await text('/var/state')).toBe('old');
    expect(await text('/etc/a')).toBe('of the running root');
    expect(await exists('staged')).toBe(false);
  });

  test('of a staged deployment is undone there', async () => {
    const staged = { ...target, root: at('staged'), varRoot: target.root };
    await mkdir(path.join(staged.root, 'etc'), { recursive: true });
    await put('/etc/a', 'of the running root');
    await put('staged/etc/a', 'old');
    await interrupted([file('/etc/a', 'new')], 1, staged);
    await finishOrUndoWrite(target);
    expect([await text('/etc/a'), await text('staged/etc/a')]).toEqual(['of the running root', 'old']);
  });
});

describe('labels of what is put back', () => {
  test('are set again in each tree, for what was there before and nothing else', async () => {
    const staged = { ...target, root: at('staged'), varRoot: target.root };
    await mkdir(path.join(staged.root, 'etc'), { recursive: true });
    await put('/var/state', 'old');
    await put('staged/etc/old', 'old');
    await interrupted(
      [file('/etc/added', 'new'), file('/etc/old', 'new'), file('/var/state', 'new')],
      3,
      staged,
    );
    const labelled: [string, readonly string[]][] = [];
    await finishOrUndoWrite({
      ...target,
      relabel: async (root, names) => void labelled.push([root, names]),
    });
    expect(labelled).toEqual([
      [staged.root, ['/etc/old']],
      [target.root, ['/var/state']],
    ]);
  });

  test('are not asked for where nothing was put back', async () => {
    await interrupted([file('/etc/added', 'new')], 1);
    const labelled: (readonly string[])[] = [];
    await finishOrUndoWrite({ ...target, relabel: async (_root, names) => void labelled.push(names) });
    expect(labelled).toEqual([]);
  });

  test('that can not be set are reported once everything is undone', async () => {
    await put('/etc/old', 'old');
    await interrupted([file('/etc/old', 'new')]);
    const cause = new Error('no policy');
    const undone = finishOrUndoWrite({ ...target, relabel: () => Promise.reject(cause) });
    await expect(undone).rejects.toThrow(UnlabelledError);
    await expect(undone).rejects.toMatchObject({ message: expect.stringContaining('/etc/old: '), cause });
    expect(await text('/etc/old')).toBe('old');
    expect(await finishOrUndoWrite(target)).toBe('nothing');
  });
});

describe('passwords', () => {
  const passwords = [
    { user: 'core', before: '*', after: '$6$new' },
    { user: 'admin', before: '*', after: '$6$new' },
  ];
  const shadow = 'core:$6$new:1::::::\nadmin:$6$own:1::::::\n';

  test('that a write has set are restored, and those that somebody has set since are not', async () => {
    await put('/etc/passwd', 'core:x:1:1::/:\nadmin:x:2:2::/:\n');
    await put('/etc/shadow', shadow);
    await openWriteLog(target, { steps: [], after: new Map(), passwords }, before);
    const set: unknown[] = [];
    const undo = { ...target, setPasswords: async (...given: unknown[]) => void set.push(given.slice(0, 2)) };
    await finishOrUndoWrite(undo);
    expect(set).toEqual([[target.root, new Map([['core', '*']])]]);
  });

  test('of a deployment that was deleted are gone with it', async () => {
    const staged = { ...target, root: at('staged'), varRoot: target.root };
    await mkdir(staged.root);
    await openWriteLog(staged, { steps: [], after: new Map(), passwords }, before);
    await rm(staged.root, { recursive: true });
    expect(await finishOrUndoWrite(target)).toBe('undone');
  });
});

describe('without a write under way', () => {
  test('copies that no record needs are removed, and nothing else', async () => {
    await put('/etc/kept', 'admin');
    await put('/etc/other', 'admin');
    await interrupted([]);
    await finishOrUndoWrite(target);
    for (const name of ['/etc/kept', '/etc/other']) await keepOriginal(target, target.stateDir, name);
    await mkdir(path.join(target.stateDir, 'write'));
    expect(await readdir(path.join(target.stateDir, 'originals'))).toHaveLength(2);
    expect(await finishOrUndoWrite(target)).toBe('nothing');
    expect(await readdir(path.join(target.stateDir, 'originals'))).toHaveLength(1);
    expect(await readdir(target.stateDir)).not.toContain('write');
  });

  test('one that was closed is whole', async () => {
    await put('/etc/old', 'old');
    await interrupted([file('/etc/old', 'new')]);
    await closeWriteLog(target.stateDir);
    expect(await finishOrUndoWrite(target)).toBe('nothing');
    expect(await text('/etc/old')).toBe('new');
  });

  test('copies of an earlier write are no part of the next', async () => {
    await put('/etc/a', 'old');
    await interrupted([file('/etc/a', 'new')], 0);
    await interrupted([link('/etc/b', 'a')], 0);
    expect(await readdir(path.join(target.stateDir, 'write'))).toEqual([]);
  });
});

describe('room', () => {
  /** A file of any size, without its bytes. */
  const sized = (bytes: number): WriteStep => ({
    ...(file('/etc/new', '') as Extract<WriteStep, { kind: 'file' }>),
    contents: { byteLength: bytes } as Uint8Array,
  });

  test('is there for a small write', async () => {
    await put('/etc/old', 'old');
    await symlink('old', at('/etc/link'));
    await requireRoom(target, [
      sized(1),
      remove('/etc/old'),
      { kind: 'restore', name: '/etc/b', source: at('etc/old') },
    ]);
  });

  test('is missing for more than the disk has, which the message compares', async () => {
    const refused = requireRoom(target, [sized(2 ** 60)]);
    await expect(refused).rejects.toThrow(NoRoomError);
    await expect(refused).rejects.toThrow(
      new RegExp(`^/etc: ${2 ** 50 + 1024 + 8} KiB are needed .* \\d+ KiB are free$`),
    );
  });
});

/** The name that a killed write of a path leaves its half-written file under. */
async function temporaryNamesOf(name: string): Promise<readonly string[]> {
  const root = await mkdtemp(path.join(tmpdir(), 'shale-write-log-temporary-'));
  await using tree = new HostTree({ root });
  const parent = await tree.parentOf(`/${path.basename(name)}`);
  let names: readonly string[] = [];
  await parent.replaceFile(
    path.basename(name),
    async () => {
      names = await readdir(root);
    },
    { mode: 0o600, ...OWN },
  );
  await rm(root, { recursive: true });
  return names;
}
