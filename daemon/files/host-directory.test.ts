import {
  chmod,
  link,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { recordSyncs } from '../../test/fixtures/synced-files.ts';
import { HostDirectory, isTemporaryName } from './host-directory.ts';

const own = { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 };

let root: string;
let directory: HostDirectory;
const at = (name: string) => path.join(root, name);
const names = async () => (await readdir(root)).sort();

beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'shale-directory-'));
  await writeFile(at('file'), 'text');
  await symlink('file', at('link'));
  await mkdir(at('sub'));
  directory = await HostDirectory.open(root, '/etc');
});
afterEach(async () => {
  await directory[Symbol.asyncDispose]();
  await rm(root, { recursive: true });
});

/** What this process has open below the root. */
async function openFiles(): Promise<readonly string[]> {
  const opened = await Promise.all(
    (await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')),
  );
  return opened.filter((place) => place.startsWith(root));
}

describe('what is opened', () => {
  const write = (handle: { writeFile(text: string): Promise<void> }) => handle.writeFile('new');

  test.each<[string, () => Promise<unknown>]>([
    ['reading a file', () => directory.read('file', 10)],
    ['refusing a large file', () => directory.read('file', 1)],
    ['looking at an entry', () => directory.entry('file')],
    ['writing a file', () => directory.replaceFile('file', write)],
    ['a write that fails', () => directory.replaceFile('sub', write).catch(() => undefined)],
    ['writing a link', () => directory.replaceLink('link', 'sub', own)],
    ['making a directory', () => directory.makeDirectory('new', { ...own, mode: 0o755 })],
    ['finding one made', () => directory.makeDirectory('sub', { ...own, mode: 0o755 }, 'leave')],
    ['copying a file', () => directory.copyTo('file', at('copy'))],
    ['copying one back', () => directory.copyFrom('other', at('file'))],
    ['a directory that is none', () => directory.child('file').catch(() => undefined)],
  ])('is closed after %s', async (_what, act) => {
    await act();
    expect(await openFiles()).toEqual([root]);
  });

  test.each(['', '.', '..', 'sub/file'])('is nothing outside of the directory: %j', async (base) => {
    await expect(directory.stat(base)).rejects.toThrow('is not the name of a file in it');
    await expect(directory.child(base)).rejects.toThrow('is not the name of a file in it');
  });

  test('is not closed while something is done in it, and nothing is done afterwards', async () => {
    const held = Promise.withResolvers<void>();
    const other = await HostDirectory.open(root, '/etc');
    const writing = other.replaceFile('new', async (handle) => {
      await held.promise;
      await handle.writeFile('late');
    });
    let isClosed = false;
    const closing = other[Symbol.asyncDispose]().then(() => {
      isClosed = true;
    });
    await directory.list();
    expect(isClosed).toBe(false);
    held.resolve();
    await writing;
    await closing;
    expect(await readFile(at('new'), 'utf8')).toBe('late');
    await expect(other.stat('new')).rejects.toThrow('/etc/new: /etc is no longer open');
  });

  test('is closed with the directory', async () => {
    await directory[Symbol.asyncDispose]();
    expect(await openFiles()).toEqual([]);
    directory = await HostDirectory.open(root, '/etc');
  });
});

describe('reading', () => {
  test('tells what lies at a name', async () => {
    expect((await directory.list()).sort()).toEqual(['file', 'link', 'sub']);
    expect(await directory.stat('none')).toBeUndefined();
    expect((await directory.stat('link'))?.isSymbolicLink()).toBe(true);
    expect((await directory.stats()).ino).toBe((await stat(root)).ino);
    expect(await directory.readLink('link')).toBe('file');
    expect(await directory.entry('none')).toBeUndefined();
    expect(await directory.entry('link')).toMatchObject({ kind: 'symlink', target: 'file' });
  });

  test.each<[string, string, number, string | undefined]>([
    ['a file', 'file', 5, 'text'],
    ['a file of as many bytes as are allowed', 'file', 4, 'text'],
    ['no larger file', 'file', 3, undefined],
    ['nothing where nothing is', 'none', 5, undefined],
    ['nothing through a link', 'link', 5, undefined],
    ['nothing of a directory', 'sub', 1_000_000, undefined],
  ])('gives %s', async (_what, name, limit, expected) => {
    expect((await directory.read(name, limit))?.toString()).toBe(expected);
  });

  test('fails with the name that the host has for it', async () => {
    await expect(HostDirectory.open(at('none'), '/etc')).rejects.toThrow('/etc: ENOENT');
    await expect(HostDirectory.open(at('file'), '/etc')).rejects.toThrow('/etc: ENOTDIR');
    await expect(directory.readLink('file')).rejects.toThrow('/etc/file: EINVAL');
    await expect(directory.read('x'.repeat(300), 1)).rejects.toThrow(/^\/etc\/x+: ENAMETOOLONG/);
  });
});

describe('a directory below', () => {
  test('is opened by its name, and is absent where there is none', async () => {
    await using child = await directory.child('sub');
    expect(child?.name).toBe('/etc/sub');
    expect(await directory.child('none')).toBeUndefined();
  });

  test.each([
    ['link', '/etc/link: expected a directory, found a symbolic link'],
    ['file', '/etc/file: expected a directory, found none'],
  ])('is never %s', async (name, message) => {
    await expect(directory.child(name)).rejects.toThrow(message);
  });

  test.each<[string, number, number, boolean]>([
    ['root alone can write to both', 0o755, 0o755, true],
    ['others can write to it', 0o755, 0o757, false],
    ['others can write above it', 0o757, 0o755, false],
    // A user's own group is the user's.
    ['a group can write to it', 0o755, 0o775, own.uid !== 0],
  ])('belongs to root alone or not: %s', async (_what, above, mode, expected) => {
    await chmod(root, above);
    await chmod(at('sub'), mode);
    await using parent = await HostDirectory.open(root, '/etc');
    await using child = await parent.child('sub');
    expect(child?.isRootsOwn).toBe(expected);
  });
});

describe('writing', () => {
  test('sets owner and mode, also bits that a change of the owner clears', async () => {
    await directory.replaceFile('tool', (handle) => handle.writeFile('x'), { ...own, mode: 0o6755 });
    expect((await stat(at('tool'))).mode & 0o7777).toBe(0o6755);
  });

  test('leaves the other names of a file alone', async () => {
    await link(at('file'), at('other'));
    await directory.replaceFile('file', (handle) => handle.writeFile('new'));
    expect([await readFile(at('file'), 'utf8'), await readFile(at('other'), 'utf8')]).toEqual([
      'new',
      'text',
    ]);
  });

  test('that fails leaves what was there, and nothing else', async () => {
    const failing = directory.replaceFile('file', async (handle) => {
      await handle.writeFile('half');
      throw new Error('no more');
    });
    await expect(failing).rejects.toThrow('no more');
    expect(await readFile(at('file'), 'utf8')).toBe('text');
    expect(await names()).toEqual(['file', 'link', 'sub']);
  });

  test('takes the place of a link, and a link that of a file', async () => {
    await directory.replaceFile('link', (handle) => handle.writeFile('new'));
    await directory.replaceLink('file', '../elsewhere', own);
    expect((await lstat(at('link'))).isFile()).toBe(true);
    expect(await readlink(at('file'))).toBe('../elsewhere');
    expect(await names()).toEqual(['file', 'link', 'sub']);
  });

  test('takes a name as long as a file system has it', async () => {
    const long = 'x'.repeat(255);
    await directory.replaceFile(long, (handle) => handle.writeFile('new'));
    expect(await readFile(at(long), 'utf8')).toBe('new');
  });

  test('gives a file one more name, from another directory or over one that it has', async () => {
    await using sub = await directory.child('sub');
    if (sub === undefined) throw new Error('no directory sub');
    await sub.replaceHardLink('same', directory, 'file');
    await sub.replaceHardLink('same', directory, 'file');
    expect((await stat(at('sub/same'))).ino).toBe((await stat(at('file'))).ino);
    expect(await readdir(at('sub'))).toEqual(['same']);
    for (const source of ['none', 'sub']) {
      await expect(sub.replaceHardLink('same', directory, source)).rejects.toThrow(
        `/etc/sub/same: /etc/${source} is no file that it can share`,
      );
    }
  });
});

describe('what somebody else changes meanwhile', () => {
  /** Has something done when the directory is asked next. */
  function whenAsked(name: 'stat' | 'child', act: () => Promise<void>, when: 'before' | 'after'): void {
    const ask = Reflect.get(HostDirectory.prototype, name) as (base: string) => Promise<unknown>;
    const spy = vi.spyOn(directory as unknown as Record<typeof name, typeof ask>, name);
    spy.mockImplementation(async (base) => {
      if (when === 'before') await act();
      const answer = await ask.call(directory, base);
      if (when === 'after') await act();
      return answer;
    });
    onTestFinished(() => spy.mockRestore());
  }

  test('is no file that gets one more name', async () => {
    await writeFile(at('another'), '');
    whenAsked('stat', () => rename(at('another'), at('file')), 'after');
    await using sub = await HostDirectory.open(at('sub'), '/etc/sub');
    await expect(sub.replaceHardLink('same', directory, 'file')).rejects.toThrow(
      '/etc/file: changed by somebody else while it was linked',
    );
    expect(await readdir(at('sub'))).toEqual([]);
  });

  test('is no directory that was made', async () => {
    whenAsked('child', () => rm(at('new'), { recursive: true }), 'before');
    await expect(directory.makeDirectory('new', { ...own, mode: 0o755 })).rejects.toThrow(
      '/etc/new: removed by somebody else while it was made',
    );
  });
});

describe('making a directory', () => {
  const mode = 0o750;
  const modeOf = async (name: string) => (await stat(at(name))).mode & 0o7777;

  test('gives it the mode, new or not', async () => {
    for (const name of ['new', 'sub']) {
      await directory.makeDirectory(name, { ...own, mode });
      expect(await modeOf(name)).toBe(mode);
    }
  });

  test('leaves one as it is that is there, if that is asked for', async () => {
    await chmod(at('sub'), 0o711);
    await directory.makeDirectory('sub', { ...own, mode }, 'leave');
    await directory.makeDirectory('new', { ...own, mode }, 'leave');
    expect([await modeOf('sub'), await modeOf('new')]).toEqual([0o711, mode]);
  });

  test.each(['adjust', 'leave'] as const)('fails where something else is (%s)', async (ifThere) => {
    for (const name of ['file', 'link']) {
      await expect(directory.makeDirectory(name, { ...own, mode }, ifThere)).rejects.toThrow(
        `/etc/${name}: expected a directory`,
      );
    }
  });

  test('fails where its parent is gone', async () => {
    await using sub = await directory.child('sub');
    await rm(at('sub'), { recursive: true });
    await expect(sub?.makeDirectory('new', { ...own, mode })).rejects.toThrow('/etc/sub/new: ENOENT');
  });

  test('does not empty one of the same owner first, whoever can write beside it', async () => {
    await chmod(root, 0o777);
    await writeFile(at('sub/file'), '');
    await using shared = await HostDirectory.open(root, '/etc');
    await shared.makeDirectory('sub', { ...own, mode });
    expect(await modeOf('sub')).toBe(mode);
  });
});

describe('removing', () => {
  test('takes away files, links and empty directories, and nothing else', async () => {
    await directory.remove('file');
    await directory.remove('link');
    await writeFile(at('sub/file'), '');
    await expect(directory.remove('sub')).rejects.toThrow('/etc/sub: E');
    await expect(directory.removeDirectory('sub')).rejects.toThrow('/etc/sub: ENOTEMPTY');
    expect(await names()).toEqual(['sub']);
    await rm(at('sub/file'));
    await directory.removeDirectory('sub');
    expect(await names()).toEqual([]);
    await expect(directory.remove('file')).rejects.toThrow('/etc/file: ENOENT');
    await expect(directory.removeDirectory('sub')).rejects.toThrow('/etc/sub: ENOENT');
  });

  test('of what a killed write left takes that alone', async () => {
    let temporary = '';
    await directory.replaceFile('file', async () => {
      temporary = (await names()).find(isTemporaryName) ?? '';
    });
    expect(isTemporaryName('file')).toBe(false);
    await writeFile(at(temporary), 'half');
    await directory.removeTemporary('other');
    expect(await names()).toContain(temporary);
    await directory.removeTemporary('file');
    await directory.removeTemporary('file');
    expect(await names()).toEqual(['file', 'link', 'sub']);
  });
});

describe('a copy', () => {
  test('comes back as it was, and takes the place of what is at its own', async () => {
    await chmod(at('file'), 0o640);
    await mkdir(at('kept'));
    await writeFile(at('kept/file'), 'older');
    for (const name of ['file', 'link']) {
      await directory.copyTo(name, at(`kept/${name}`));
      await directory.remove(name);
      await directory.copyFrom(name, at(`kept/${name}`));
    }
    expect(await readFile(at('file'), 'utf8')).toBe('text');
    expect((await stat(at('file'))).mode & 0o7777).toBe(0o640);
    expect(await readlink(at('link'))).toBe('file');
    expect(await readlink(at('kept/link'))).toBe('file');
    expect(await names()).toEqual(['file', 'kept', 'link', 'sub']);
  });

  test('is durable, with the directory that it is in', async () => {
    await mkdir(at('kept'));
    const synced = await recordSyncs();
    await directory.copyTo('file', at('kept/file'));
    expect(synced).toEqual([at('kept/file'), at('kept')]);
    await directory.copyTo('link', at('kept/link'));
    expect(synced.slice(2)).toEqual([at('kept')]);
  });

  test('of a file comes back also where others can write', async () => {
    await mkdir(at('kept'));
    await directory.copyTo('file', at('kept/file'));
    await chmod(root, 0o777);
    await using shared = await HostDirectory.open(root, '/etc');
    await shared.copyFrom('again', at('kept/file'));
    expect(await readFile(at('again'), 'utf8')).toBe('text');
  });

  test('of a pipe comes back where root alone can write, and nowhere else', async () => {
    await mkdir(at('kept'));
    await execa('mkfifo', [at('kept/pipe')]);
    await directory.copyFrom('pipe', at('kept/pipe'));
    expect((await lstat(at('pipe'))).isFIFO()).toBe(true);
    await chmod(root, 0o777);
    await using shared = await HostDirectory.open(root, '/etc');
    await expect(shared.copyFrom('again', at('kept/pipe'))).rejects.toThrow(
      '/etc/again: a device, pipe or socket is not brought back',
    );
    expect(await names()).toEqual(['file', 'kept', 'link', 'pipe', 'sub']);
  });

  test('that fails says why, names the file of the host, and leaves nothing', async () => {
    await expect(directory.copyTo('none', at('kept'))).rejects.toThrow(
      '/etc/none: could not be copied: No such file or directory',
    );
    await expect(directory.copyTo('file', at('no/where'))).rejects.toThrow('/etc/file: could not be copied');
    await mkdir(at('full'));
    await expect(directory.copyFrom('full', at('file'))).rejects.toThrow('/etc/full: E');
    expect(await names()).toEqual(['file', 'full', 'link', 'sub']);
  });
});
