import { describe, expect, test } from 'vitest';
import { baseObstacles, ownerOnBase, placesOnBase } from './base-obstacles.ts';
import type { BaseContent, BaseEntry } from './base-tree.ts';
import { emptyNodeConfig, type NodeConfig, type Owner } from './node-config.ts';

const root = { id: 0 };
const link = (target: string): BaseEntry => ({ kind: 'link', target });
const file: BaseEntry = { kind: 'file' };
const directory = (isEmpty = false): BaseEntry => ({
  kind: 'directory',
  mode: 0o755,
  uid: 0,
  gid: 0,
  isEmpty,
});

function base(entries: Readonly<Record<string, BaseEntry>>, more: Partial<BaseContent> = {}): BaseContent {
  const all: Readonly<Record<string, BaseEntry>> = { '/etc': directory(), '/usr': directory(), ...entries };
  return { at: (path) => all[path], users: new Map(), groups: new Map(), ...more };
}

interface Paths {
  readonly files?: readonly string[];
  readonly directories?: readonly string[];
  readonly links?: readonly string[];
}

function config({ files = [], directories = [], links = [] }: Paths, user: Owner = root): NodeConfig {
  const owned = { mode: 0o644, user, group: root, contents: Buffer.of() };
  const byPath = <T>(paths: readonly string[], more: T) =>
    new Map(paths.map((path) => [path, { path, ...more }] as const));
  return {
    ...emptyNodeConfig,
    files: byPath(files, owned),
    directories: byPath(directories, owned),
    links: byPath(links, { target: 'x', hard: false, user, group: root }),
  };
}

const whys = (paths: Paths, on: BaseContent, user?: Owner) =>
  baseObstacles(config(paths, user), on).map(({ subject, why }) => `${subject} ${why}`);

describe('a path is placed where the base leads', () => {
  const modern = base({
    '/bin': link('usr/bin'),
    '/sbin': link('usr/sbin'),
    '/usr/bin': directory(),
    '/usr/sbin': link('bin'),
    '/usr/lib': directory(),
    '/usr/lib64': link('lib'),
    '/etc/ssl': directory(),
    '/etc/ssl/certs': link('../pki/tls/certs'),
    '/etc/state': link('../var/lib/state'),
    '/home': link('var/home'),
    '/opt': link('usr/lib/opt'),
    '/tmp': link('sysroot/tmp'),
  });

  test.each([
    ['/sbin/x', '/usr/bin/x'],
    ['/usr/sbin/x', '/usr/bin/x'],
    ['/lib64/x', '/usr/lib/x'],
    ['/usr/lib64/x/y', '/usr/lib/x/y'],
    ['/etc/ssl/certs/ca.pem', '/etc/pki/tls/certs/ca.pem'],
    ['/etc/plain', '/etc/plain'],
    ['/opt/x', '/usr/lib/opt/x'],
  ])('%s in the image at %s', (path, real) => {
    const { placeOf, obstacles } = placesOnBase(config({ files: [path] }), modern);
    expect(obstacles).toEqual([]);
    expect(placeOf(path)).toEqual({ kind: 'image', path: real });
  });

  test.each(['/etc/state/x', '/home/core/x', '/tmp/x', '/var/x'])('%s as state', (path) => {
    const { placeOf, obstacles } = placesOnBase(config({ files: [path] }), modern);
    expect([placeOf(path), obstacles]).toEqual([{ kind: 'state' }, []]);
  });

  test('a directory of the config replaces a link of the base, and what is below it is in the new directory', () => {
    const paths = { directories: ['/etc/ssl/certs'], files: ['/etc/ssl/certs/ca.pem'] };
    const { placeOf, obstacles } = placesOnBase(config(paths), modern);
    expect(obstacles).toEqual([]);
    expect(placeOf('/etc/ssl/certs/ca.pem')).toEqual({ kind: 'image', path: '/etc/ssl/certs/ca.pem' });
  });

  test('what an image carries beside the config, too', () => {
    const on = base({ '/usr/share': link('lib/share'), '/usr/lib/share': directory() });
    expect(placesOnBase(config({}), on).placeOf('/usr/share/shale/machine-config.json')).toEqual({
      kind: 'image',
      path: '/usr/lib/share/shale/machine-config.json',
    });
  });

  test('a base without a merged /usr keeps its own /bin; one that has neither gets that of /usr', () => {
    const own = base({ '/bin': directory() });
    expect(placesOnBase(config({ files: ['/bin/x'] }), own).placeOf('/bin/x')).toEqual({
      kind: 'image',
      path: '/bin/x',
    });
    expect(placesOnBase(config({ files: ['/lib/x'] }), own).placeOf('/lib/x')).toEqual({
      kind: 'image',
      path: '/usr/lib/x',
    });
  });
});

describe('what the base hinders is told with the path, what is there, and what to do', () => {
  test('a path below a file', () => {
    expect(whys({ files: ['/etc/f/x'] }, base({ '/etc/f': file }))).toEqual([
      '/etc/f/x lies below /etc/f, which is a file in the base image; choose another path, or have the directory /etc/f in the config, which replaces the file',
    ]);
    expect(whys({ files: ['/etc/f/x'], directories: ['/etc/f'] }, base({ '/etc/f': file }))).toEqual([]);
  });

  test.each(['files', 'links'] as const)('%s over a directory that is not empty', (kind) => {
    const paths = { [kind]: ['/etc/full', '/etc/empty', '/etc/link'] };
    const on = base({ '/etc/full': directory(), '/etc/empty': directory(true), '/etc/link': link('full') });
    expect(whys(paths, on)).toEqual([
      `/etc/full is a directory in the base image that is not empty, and ${kind === 'files' ? 'a file' : 'a symbolic link'} in its place would delete what is in it; choose another path`,
    ]);
    expect(whys({ directories: ['/etc/full', '/etc/empty', '/etc/link', '/etc/f'] }, base({}))).toEqual([]);
  });

  test('links in a circle, and one that leads nowhere', () => {
    const on = base({ '/etc/a': link('b'), '/etc/b': link('a'), '/etc/c': link('none/../x') });
    expect(whys({ files: ['/etc/a/x', '/etc/c/x'] }, on)).toEqual([
      expect.stringMatching(/^\/etc\/a\/x leads in a circle by the base image's link \/etc\/[ab]; /),
      expect.stringMatching(
        /^\/etc\/c\/x leads through the base image's link \/etc\/c, whose target is missing; /,
      ),
    ]);
  });

  test('a link to what the operating system manages', () => {
    const on = base({ '/etc/pristine': link('../usr/etc') });
    expect(whys({ files: ['/etc/pristine/x'] }, on)).toEqual([
      '/etc/pristine/x leads to /usr/etc/x by links of the base image: /usr/etc is managed by the operating system',
    ]);
  });

  test('a path by a link of the base that the config replaces', () => {
    const on = base({
      '/etc/first': link('second'),
      '/etc/second': link('third'),
      '/etc/third': directory(),
    });
    expect(whys({ files: ['/etc/first/x', '/etc/second'] }, on)).toEqual([
      '/etc/first/x lies below /etc/second, which is a file, by links of the base image: it is /etc/third/x; choose another path',
    ]);
  });

  test('two names of one place, and one below the other', () => {
    const on = base({ '/home': link('var/home'), '/usr/lib64': link('lib'), '/usr/lib': directory() });
    expect(whys({ files: ['/home/u/a', '/var/home/u/a'] }, on)).toEqual([
      '/var/home/u/a is the same place as /home/u/a by links of the base image: both are /var/home/u/a; keep one of them',
    ]);
    expect(whys({ files: ['/usr/lib/x', '/usr/lib64/x/y'] }, on)).toEqual([
      '/usr/lib64/x/y lies below /usr/lib/x, which is a file, by links of the base image: it is /usr/lib/x/y; choose another path',
    ]);
    expect(whys({ directories: ['/usr/lib/d'], files: ['/usr/lib64/d/y'] }, on)).toEqual([]);
  });

  test('an owner that it does not know, where no node can set it', () => {
    const on = base({}, { users: new Map([['chrony', 994]]) });
    const paths = { files: ['/etc/a', '/usr/lib/b', '/var/c'], links: ['/etc/l'] };
    expect(whys(paths, on, { name: 'chrony' })).toEqual([]);
    const why =
      'user app is neither in /etc/passwd nor in /usr/lib/passwd of the base image; give a number, or a name that the base image has';
    expect(whys(paths, on, { name: 'app' })).toEqual([`/usr/lib/b ${why}`, `/etc/l ${why}`]);
  });
});

test('owners are numbers by the accounts of the base', () => {
  const accounts = { users: new Map([['a', 7]]), groups: new Map([['a', 8]]) };
  const of = (user: Owner, group: Owner) => ownerOnBase({ user, group }, accounts);
  expect(of({ name: 'a' }, { name: 'a' })).toEqual({ uid: 7, gid: 8 });
  expect(of({ name: 'root' }, { id: 5 })).toEqual({ uid: 0, gid: 5 });
  expect(of({ id: 3 }, { name: 'b' })).toMatchObject({
    uid: 3,
    gid: 0,
    unknown: expect.stringMatching(/^group b /),
  });
});

test('/usr/local is the image’s where the base has it as a directory of its own', () => {
  const on = (local: BaseEntry) =>
    placesOnBase(config({ files: ['/usr/local/bin/x'] }), base({ '/usr/local': local }));
  expect(on(directory()).placeOf('/usr/local/bin/x')).toEqual({ kind: 'image', path: '/usr/local/bin/x' });
  expect(on(link('../var/usrlocal')).placeOf('/usr/local/bin/x')).toEqual({ kind: 'state' });
});

test('a directory that the base has in /usr keeps mode and owner, and a config that names others is refused', () => {
  const on = base({ '/usr/lib': directory(), '/usr/lib/x': directory() });
  const named = (path: string, mode: number) => ({
    ...emptyNodeConfig,
    directories: new Map([[path, { path, mode, user: root, group: root }]]),
  });
  expect(baseObstacles(named('/usr/lib/x', 0o755), on)).toEqual([]);
  expect(baseObstacles(named('/usr/lib/new', 0o700), on)).toEqual([]);
  expect(baseObstacles(named('/usr/lib/x', 0o700), on)).toMatchObject([
    { subject: '/usr/lib/x', why: expect.stringContaining('with mode 0755 and owner 0:0') },
  ]);
});
