import { describe, expect, test } from 'vitest';
import { PathError } from '../../files/host-file-error.ts';
import { contentDigest, type TreeEntry } from '../../files/tree-entry.ts';
import type { Desired } from '../entries/desired-tree.ts';
import type { Original, Originals } from './originals.ts';
import { type ObservedPath, planWrite } from './plan-write.ts';

const ROOT = { uid: 0, gid: 0 };
const PARENTS = { mode: 0o700, uid: 7, gid: 8 };

const fileEntry = (sha256: string, mode = 0o644): TreeEntry => ({ kind: 'file', mode, sha256, ...ROOT });
const directoryEntry = (mode = 0o755): TreeEntry => ({ kind: 'directory', mode, ...ROOT });
const linkEntry = (target: string): TreeEntry => ({ kind: 'symlink', target, ...ROOT });

const file = (text: string): Desired => ({
  entry: fileEntry(text),
  contents: Buffer.from(text),
  parents: PARENTS,
});
const directory: Desired = { entry: directoryEntry(), parents: PARENTS };
const nothing: Desired = { entry: undefined, parents: PARENTS };

interface Given extends Partial<Omit<ObservedPath, 'location' | 'stock' | 'copy'>> {
  readonly missingParents?: readonly string[];
  readonly blockedBy?: string;
  readonly stock?: TreeEntry;
  readonly copy?: TreeEntry;
}

/** A path that neither exists nor is mentioned by a config, but for what is given. */
function pathAt(name: string, given: Given = {}): ObservedPath {
  const { missingParents = [], blockedBy, stock, copy, ...rest } = given;
  return {
    location: { name, missingParents, blockedBy },
    found: undefined,
    isManaged: false,
    from: undefined,
    to: undefined,
    hardLinkSource: undefined,
    isLinked: false,
    ...rest,
    stock: { place: `/root/usr${name}`, entry: stock },
    copy: { place: `/state${name}`, entry: copy },
  };
}

function originals(paths: Readonly<Record<string, Original>> = {}, ...made: readonly string[]): Originals {
  return { paths: new Map(Object.entries(paths)), made: new Set(made) };
}

function plan(paths: readonly ObservedPath[], before = originals()) {
  return planWrite(paths, before, [...before.made]);
}

/** A step as `kind name`. */
const stepsOf = (paths: readonly ObservedPath[], before = originals()) =>
  plan(paths, before).steps.map(({ kind, name }) => `${kind} ${name}`);

describe('what comes', () => {
  test('a new file is written with its contents, mode and owner', () => {
    const { steps, owned, found, foreign } = plan([pathAt('/etc/a', { to: file('new') })]);
    expect(steps).toEqual([
      { kind: 'file', name: '/etc/a', mode: 0o644, sha256: 'new', contents: Buffer.from('new'), ...ROOT },
    ]);
    expect([...owned]).toEqual([['/etc/a', contentDigest(fileEntry('new'))]]);
    expect([...found]).toEqual([['/etc/a', undefined]]);
    expect(foreign).toEqual([]);
  });

  test('what is as desired is not written again', () => {
    const same = pathAt('/etc/a', {
      found: fileEntry('new'),
      to: file('new'),
      missingParents: ['/etc/none'],
    });
    expect(plan([same])).toMatchObject({ steps: [], foreign: [] });
    expect([...plan([same]).owned.keys()]).toEqual(['/etc/a']);
  });

  test('parents come before children, once, with the owner that the child asks for', () => {
    const paths = [
      pathAt('/etc/x/b', { to: file('b'), missingParents: ['/etc/x'] }),
      pathAt('/etc/x/a', { to: file('a'), missingParents: ['/etc/x'] }),
    ];
    expect(stepsOf(paths)).toEqual(['directory /etc/x', 'file /etc/x/a', 'file /etc/x/b']);
    expect(plan(paths).steps[0]).toEqual({ kind: 'directory', name: '/etc/x', isParent: true, ...PARENTS });
    expect([...plan(paths).originals.made]).toEqual(['/etc/x']);
  });

  test("a parent that the config itself names has the config's mode", () => {
    const paths = [
      pathAt('/etc/x/a', { to: file('a'), missingParents: ['/etc/x'] }),
      pathAt('/etc/x', { to: directory }),
    ];
    expect(plan(paths).steps[0]).toEqual({ kind: 'directory', name: '/etc/x', mode: 0o755, ...ROOT });
  });

  test('a hard link is made from its source, a symbolic link by its target', () => {
    const link: Desired = { entry: linkEntry('/etc/target'), parents: PARENTS };
    const { steps } = plan([
      pathAt('/etc/hard', { to: file('same'), hardLinkSource: '/etc/source' }),
      pathAt('/etc/soft', { to: link }),
    ]);
    expect(steps).toEqual([
      { kind: 'symlink', name: '/etc/soft', target: '/etc/target', ...ROOT },
      { kind: 'hard link', name: '/etc/hard', source: '/etc/source' },
    ]);
  });

  test('a device or a file without contents is refused', () => {
    for (const entry of [{ kind: 'special' } as const, fileEntry('unknown')]) {
      const path = pathAt('/etc/a', { to: { entry, parents: PARENTS } });
      expect(() => plan([path])).toThrow(PathError);
      expect(() => plan([path])).toThrow(`no config can ask for a ${entry.kind}`);
    }
  });

  test('nothing can be written below what stays no directory', () => {
    const below = pathAt('/etc/file/a', { to: file('a'), blockedBy: '/etc/file' });
    expect(() => plan([below])).toThrow("/etc/file/a can't be written: /etc/file is no directory");
    const goes = pathAt('/etc/file', { found: fileEntry('old'), from: file('old') });
    expect(stepsOf([below, goes], originals({ '/etc/file': { kind: 'absent' } }))).toEqual([
      'remove /etc/file',
      'file /etc/file/a',
    ]);
    expect(stepsOf([pathAt('/etc/file/a', { to: nothing, blockedBy: '/etc/file' })])).toEqual([]);
    expect(stepsOf([pathAt('/etc/file/a', { blockedBy: '/etc/file' })])).toEqual([]);
  });
});

describe('what makes room', () => {
  test('a file is replaced in place, and goes first where a directory comes', () => {
    const found = fileEntry('old');
    expect(stepsOf([pathAt('/etc/a', { found, to: file('new') })])).toEqual(['file /etc/a']);
    expect(stepsOf([pathAt('/etc/a', { found, to: directory })])).toEqual([
      'remove /etc/a',
      'directory /etc/a',
    ]);
  });

  test('a directory goes before a file comes, and has to be empty for that', () => {
    const { steps } = plan([pathAt('/etc/a', { found: directoryEntry(), to: file('new') })]);
    expect(steps[0]).toEqual({ kind: 'remove directory', name: '/etc/a', evenIfNotEmpty: 'fail' });
    expect(steps).toHaveLength(2);
  });

  test('a directory gets another mode in place', () => {
    expect(stepsOf([pathAt('/etc/a', { found: directoryEntry(0o700), to: directory })])).toEqual([
      'directory /etc/a',
    ]);
  });

  test("what must not exist is removed, and a directory only if nobody's files are in it", () => {
    expect(stepsOf([pathAt('/etc/a', { found: linkEntry('b'), to: nothing })])).toEqual(['remove /etc/a']);
    expect(plan([pathAt('/etc/a', { found: directoryEntry(), to: nothing })]).steps).toEqual([
      { kind: 'remove directory', name: '/etc/a', evenIfNotEmpty: 'leave' },
    ]);
    expect(stepsOf([pathAt('/etc/a', { to: nothing })])).toEqual([]);
  });

  test('removals come before writes, children before parents', () => {
    const gone = originals({ '/etc/b': { kind: 'absent' }, '/etc/b/c': { kind: 'absent' } });
    const paths = [
      pathAt('/etc/b', { found: directoryEntry(), from: directory }),
      pathAt('/etc/b/c', { found: fileEntry('c'), from: file('c') }),
      pathAt('/etc/a', { to: file('a') }),
    ];
    expect(stepsOf(paths, gone)).toEqual(['remove /etc/b/c', 'remove directory /etc/b', 'file /etc/a']);
  });
});

describe('what was there before', () => {
  const taken = (given: Given) => {
    const { originals: after, keep } = plan([pathAt('/etc/a', { to: file('new'), ...given })]);
    return [after.paths.get('/etc/a'), keep];
  };

  test("somebody's own file is kept as a copy", () => {
    expect(taken({ found: fileEntry('admin') })).toEqual([{ kind: 'copy' }, ['/etc/a']]);
  });

  test('a directory is remembered by its mode and owner', () => {
    expect(taken({ found: directoryEntry(0o711) })).toEqual([
      { kind: 'directory', mode: 0o711, ...ROOT },
      [],
    ]);
  });

  test("the image's own version needs no copy", () => {
    expect(taken({ found: fileEntry('stock'), stock: fileEntry('stock') })).toEqual([{ kind: 'image' }, []]);
    expect(taken({})).toEqual([{ kind: 'image' }, []]);
  });

  test("a file of the image's that somebody deleted stays deleted later", () => {
    expect(taken({ stock: fileEntry('stock') })).toEqual([{ kind: 'absent' }, []]);
  });

  test('what Shale wrote itself is nobody else’s original', () => {
    expect(taken({ found: fileEntry('layered'), isManaged: true })).toEqual([{ kind: 'image' }, []]);
    expect(taken({ found: fileEntry('old'), from: file('old') })).toEqual([{ kind: 'image' }, []]);
    // An edit of it is not what was there before it, either: an image brings its content without a record of originals.
    expect(taken({ found: fileEntry('edited'), from: file('old') })).toEqual([{ kind: 'image' }, []]);
  });

  test('what is on record stays, and is not copied again', () => {
    const path = pathAt('/etc/a', { found: fileEntry('old'), from: file('old'), to: file('new') });
    const after = plan([path], originals({ '/etc/a': { kind: 'copy' } }));
    expect(after.originals.paths.get('/etc/a')).toEqual({ kind: 'copy' });
    expect(after.keep).toEqual([]);
  });
});

describe('what no config wants any more', () => {
  const released = (original: Original, given: Given = {}) => {
    const path = pathAt('/etc/a', { found: fileEntry('ours'), from: file('ours'), ...given });
    return plan([path], originals({ '/etc/a': original }));
  };

  test('comes back as the copy that was kept', () => {
    const {
      steps,
      originals: after,
      released: record,
    } = released({ kind: 'copy' }, { copy: fileEntry('admin'), stock: fileEntry('stock') });
    expect(steps).toEqual([{ kind: 'restore', name: '/etc/a', source: '/state/etc/a' }]);
    expect(after.paths.size).toBe(0);
    expect([...record]).toEqual([['/etc/a', contentDigest(fileEntry('admin'))]]);
  });

  test("comes back as the image's version", () => {
    expect(released({ kind: 'image' }, { stock: fileEntry('stock') }).steps).toEqual([
      { kind: 'restore', name: '/etc/a', source: '/root/usr/etc/a' },
    ]);
    expect(released({ kind: 'image' }, { stock: directoryEntry(0o711) }).steps).toEqual([
      { kind: 'remove', name: '/etc/a' },
      { kind: 'directory', name: '/etc/a', mode: 0o711, ...ROOT },
    ]);
  });

  test('is removed where the image has nothing, or nothing was there', () => {
    const remove = [{ kind: 'remove', name: '/etc/a' }];
    expect(released({ kind: 'image' }).steps).toEqual(remove);
    expect(released({ kind: 'absent' }, { stock: fileEntry('stock') }).steps).toEqual(remove);
  });

  test('becomes the directory that it was', () => {
    expect(released({ kind: 'directory', mode: 0o711, ...ROOT }).steps).toEqual([
      { kind: 'remove', name: '/etc/a' },
      { kind: 'directory', name: '/etc/a', mode: 0o711, ...ROOT },
    ]);
  });

  test('is no longer owned; what stays is', () => {
    const { owned, released: free } = plan([
      pathAt('/etc/a', { found: fileEntry('a'), from: file('a') }),
      pathAt('/etc/b', { found: fileEntry('b'), from: file('b'), to: file('b') }),
    ]);
    expect([...free.keys()]).toEqual(['/etc/a']);
    expect([...owned.keys()]).toEqual(['/etc/b']);
  });

  test('a parent that is missing above what no config speaks of is root’s', () => {
    const path = pathAt('/etc/dir/a', { stock: fileEntry('stock'), missingParents: ['/etc/dir'] });
    const { steps } = plan([path], originals({ '/etc/dir/a': { kind: 'image' } }));
    expect(steps[0]).toEqual({ kind: 'directory', name: '/etc/dir', isParent: true, mode: 0o755, ...ROOT });
  });

  test('a parent that was missing meanwhile comes back with the mode that it was made with', () => {
    const { steps } = released(
      { kind: 'image' },
      { found: undefined, stock: fileEntry('stock'), missingParents: ['/etc/dir'] },
    );
    expect(steps).toContainEqual({ kind: 'directory', name: '/etc/dir', isParent: true, ...PARENTS });
  });
});

describe('directories that were made for files', () => {
  const made = originals({ '/etc/d/a': { kind: 'absent' } }, '/etc/d');
  const leaving = pathAt('/etc/d/a', { found: fileEntry('a'), from: file('a') });

  test('go with the last of them, unless something else is in them', () => {
    const { steps, originals: after } = plan([leaving], made);
    expect(steps).toEqual([
      { kind: 'remove', name: '/etc/d/a' },
      { kind: 'remove directory', name: '/etc/d', evenIfNotEmpty: 'leave' },
    ]);
    expect(after.made.size).toBe(0);
  });

  test('stay for another file', () => {
    const stays = pathAt('/etc/d/b', { found: fileEntry('b'), to: file('b') });
    expect(stepsOf([leaving, stays], made)).toEqual(['remove /etc/d/a']);
    expect([...plan([leaving, stays], made).originals.made]).toEqual(['/etc/d']);
    const restored = originals({ '/etc/d/a': { kind: 'copy' } }, '/etc/d');
    const back = pathAt('/etc/d/a', { found: fileEntry('a'), from: file('a'), copy: fileEntry('admin') });
    expect(stepsOf([back], restored)).toEqual(['restore /etc/d/a']);
  });

  test('do not stay for a file that must not exist, nor for a neighbour of a longer name', () => {
    expect(stepsOf([pathAt('/etc/d/a', { to: nothing })], made)).toEqual(['remove directory /etc/d']);
    const neighbour = pathAt('/etc/dd', { found: fileEntry('b'), to: file('b') });
    expect(stepsOf([leaving, neighbour], made)).toEqual(['remove /etc/d/a', 'remove directory /etc/d']);
  });

  test('stay where the config now names the directory itself', () => {
    const own = pathAt('/etc/d', { found: directoryEntry(), to: directory });
    expect(stepsOf([leaving, own], made)).toEqual(['remove /etc/d/a']);
  });
});

describe('what somebody else changed since the last write', () => {
  const foreign = (given: Given) => plan([pathAt('/etc/a', given)]).foreign.map(({ what }) => what);

  test('is reported if the write would overwrite it', () => {
    expect(foreign({ found: fileEntry('edited'), from: file('old'), to: file('new') })).toEqual(['content']);
    expect(foreign({ found: fileEntry('old', 0o600), from: file('old'), to: file('new') })).toEqual(['mode']);
    expect(foreign({ found: fileEntry('edited'), from: file('old') })).toEqual(['content']);
  });

  test('is not reported if it is what the write makes, or nobody wrote the path before', () => {
    expect(foreign({ found: fileEntry('new'), from: file('old'), to: file('new') })).toEqual([]);
    expect(foreign({ found: fileEntry('old'), from: file('old'), to: file('new') })).toEqual([]);
    expect(foreign({ found: fileEntry('admin'), to: file('new') })).toEqual([]);
  });
});
