import { gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { directory, type Entry, file, fold, hard, link } from '../../test/fixtures/folded-layers.ts';
import { rpmDatabase } from '../../test/fixtures/rpm-database.ts';
import { contentsOf } from '../contents/image-contents.ts';
import { formatBaseFacts, withBaseFacts } from './base-record.ts';
import { type BaseTree, formatBaseTree, parseBaseTree } from './base-tree.ts';

const STATUS = 'var/lib/dpkg/status';
const stanza = (name: string, version: string) =>
  `Package: ${name}\nStatus: install ok installed\nArchitecture: amd64\nVersion: ${version}\n\n`;
const contents = (tree: BaseTree) => contentsOf(tree, 'amd64');
const packages = (tree: BaseTree) =>
  contents(tree).databases.flatMap((each) => each.packages.map(({ name, version }) => `${name} ${version}`));
const OBJECT = 'sysroot/ostree/repo/objects/ab/cdef.file';

describe('of the layers of an image', () => {
  test('the last database counts, and one that is taken away does not', async () => {
    const layers: Entry[][] = [
      [file(STATUS, stanza('a', '1'))],
      [file(STATUS, stanza('a', '2') + stanza('b', '1'))],
    ];
    expect(packages(await fold(layers))).toEqual(['a 2', 'b 1']);
    expect(packages(await fold([...layers, [file('var/lib/dpkg/.wh.status')]]))).toEqual([]);
    expect(packages(await fold([...layers, [file('var/lib/.wh.dpkg')]]))).toEqual([]);
    const opaque: Entry[] = [file('var/lib/dpkg/.wh..wh..opq'), file(STATUS, stanza('c', '1'))];
    expect(packages(await fold([...layers, opaque]))).toEqual(['c 1']);
  });

  test('those upon a tree that is known make the same as all of them', async () => {
    const layers: Entry[][] = [
      [file(STATUS, stanza('a', '1')), file('usr/lib/os-release', 'ID=x\n')],
      [file('var/lib/dpkg/status.d/b', stanza('b', '1'))],
    ];
    const below = await fold(layers.slice(0, 1));
    const recorded = withBaseFacts(parseBaseTree(formatBaseTree(below), 'r'), formatBaseFacts(below), 'r');
    const all = await fold(layers);
    for (const tree of [below, recorded]) {
      const upon = await fold(layers.slice(1), { below: tree });
      expect(contents(upon)).toEqual(contents(all));
      expect(formatBaseFacts(upon)).toEqual(formatBaseFacts(all));
    }
  });

  test.each([
    ['gzip', { suffix: '+gzip', compress: gzipSync }],
    ['zstd', { suffix: '+zstd', compress: zstdCompressSync }],
  ])('that are compressed by %s, an RPM database is read', async (_, compression) => {
    const database = file(
      'usr/lib/sysimage/rpm/rpmdb.sqlite',
      rpmDatabase([{ name: 'bash', version: '5', release: '1' }]),
    );
    expect(packages(await fold([[database]], { compression }))).toEqual(['bash 5-1']);
  });

  test.each([
    ['a link', [link('var/lib/rpm', '../../usr/lib/sysimage/rpm')]],
    [
      'a place of its own, behind a link',
      [directory('usr/share'), link('usr/share/rpm', '/usr/lib/sysimage/rpm')],
    ],
  ])('an RPM database is found once where there is %s to it', async (_, links: Entry[]) => {
    const database = file(
      'usr/lib/sysimage/rpm/rpmdb.sqlite',
      rpmDatabase([{ name: 'bash', version: '5', release: '1' }]),
    );
    expect(packages(await fold([[...links, database]]))).toEqual(['bash 5-1']);
  });

  test.each<[string, Entry[], string, readonly string[]]>([
    ['/usr/lib/sysimage/dpkg', [file('usr/lib/sysimage/dpkg/status', stanza('a', '1'))], '', ['a 1']],
    ['/usr/share/dpkg/database', [file('usr/share/dpkg/database/status', stanza('a', '1'))], '', ['a 1']],
    [
      '/usr/lib/sysimage/dpkg behind a link',
      [
        file('usr/lib/sysimage/dpkg/status', stanza('a', '1')),
        link('var/lib/dpkg', '../../usr/lib/sysimage/dpkg'),
      ],
      '/var/lib/dpkg/status',
      ['a 1'],
    ],
    [
      'two places, of which dpkg uses its own',
      [file('usr/lib/sysimage/dpkg/status', stanza('a', '1')), file(STATUS, stanza('a', '2'))],
      '/var/lib/dpkg/status',
      ['a 2'],
    ],
  ])('the packages of dpkg are found in %s, once', async (place, layer, path, expected) => {
    const tree = await fold([layer]);
    expect(packages(tree)).toEqual(expected);
    expect(contents(tree).databases.map((each) => each.path)).toEqual([path || `${place}/status`]);
  });

  test('a container of an ostree commit has its files as hard links to objects', async () => {
    const objects: readonly (readonly [string, string | Buffer])[] = [
      [
        'usr/share/rpm/rpmdb.sqlite',
        rpmDatabase([{ name: 'kernel', version: '6.12', release: '1', epoch: 1 }]),
      ],
      ['usr/lib/os-release', '# comment\nNAME="Fedora Linux"\nVERSION_ID=42\n'],
      ['usr/lib/bootc/kargs.d/10.toml', `${'# licence\n'.repeat(100)}kargs = ["quiet", "a=\\"b c\\""]\n`],
      ['usr/lib/systemd/system-preset/90-a.preset', '# x\nenable sshd.service\ndisable *\n'],
    ];
    const name = (index: number) => OBJECT.replace('ab', `a${index}`);
    const tree = await fold([
      objects.map(([, content], index) => file(name(index), content)),
      objects.map(([path], index) => hard(path, name(index))),
    ]);
    expect(packages(tree)).toEqual(['kernel 1:6.12-1']);
    expect(contents(tree)).toMatchObject({
      os: { NAME: 'Fedora Linux', VERSION_ID: '42' },
      kernelArguments: ['quiet', 'a="b c"'],
      presets: ['enable sshd.service', 'disable *'],
      unreadable: [],
    });
  });

  test.each([
    [
      'var/lib/rpm/Packages',
      Buffer.concat([Buffer.alloc(12), Buffer.from('6115060000', 'hex')]),
      'Berkeley DB',
    ],
    ['usr/lib/sysimage/rpm/Packages.db', Buffer.from('RpmP....'), 'ndb'],
    [
      'usr/lib/sysimage/rpm/rpmdb.sqlite',
      Buffer.from(`SQLite format 3\0${'garbage '.repeat(20)}`),
      "can't be read",
    ],
    [STATUS, Buffer.from('Package: a\n'.repeat(4_000_000)), 'has more than 33554432 bytes'],
  ])('%s of bytes that are not read is named, and why', async (path, content, why) => {
    expect(contents(await fold([[file(path, content)]]))).toMatchObject({
      databases: [],
      unreadable: [{ path: `/${path}`, why: expect.stringContaining(why), isDatabase: true }],
    });
  });

  test('an RPM database with an open log is not read as if it were whole', async () => {
    const database = rpmDatabase([{ name: 'bash', version: '5', release: '1' }]);
    const at = 'usr/lib/sysimage/rpm/rpmdb.sqlite';
    const log = Buffer.concat([Buffer.from('377f0682', 'hex'), Buffer.alloc(4096)]);
    const tree = await fold([[file(at, database), file(`${at}-wal`, log)]]);
    expect(contents(tree)).toMatchObject({
      databases: [],
      unreadable: [{ why: expect.stringContaining('log') }],
    });
    expect(packages(await fold([[file(at, database), file(`${at}-wal`)]]))).toEqual(['bash 5-1']);
  });

  test('more packages than all distributions have are left out, and the list says so', async () => {
    const full = Array.from({ length: 41_000 }, (_, index) => `Package: p${index}\nVersion: 1\n\n`).join('');
    const tree = await fold([
      Array.from({ length: 6 }, (_, index) => file(`var/lib/dpkg/status.d/${index}`, full)),
    ]);
    const { databases, unreadable } = contents(tree);
    expect([databases.length, unreadable.length]).toEqual([4, 2]);
    expect(unreadable[0]?.why).toContain('the image has more than 200000 packages');
  });
});

test('accounts are known however the bytes of a file arrive', async () => {
  const root = 'root:x:0:0::/root:/bin/sh\ndaemon:x:1:1::/:/bin/false\n';
  // The chunks of `fold` have 1000 bytes, the blocks of an archive 512: behind 40 entries, 8 bytes of a file are in one.
  for (let before = 30; before < 50; before += 1) {
    const others = Array.from({ length: before }, (_, index) => directory(`d${index}`));
    const tree = await fold([[...others, file('etc/passwd', root)]]);
    expect([...tree.users]).toEqual([
      ['root', 0],
      ['daemon', 1],
    ]);
  }
});

test('kernels are the directories with one, and units those that something wants', async () => {
  const tree = await fold([
    [
      link('lib', 'usr/lib'),
      file('usr/lib/modules/6.12.9/vmlinuz'),
      directory('usr/lib/modules/6.12.14/kernel'),
      file('usr/lib/modules/6.1.0/modules.dep'),
      file('usr/lib/systemd/system/a.service'),
      file('usr/lib/systemd/system/b.service'),
      file('usr/lib/systemd/system/c.timer'),
      link('usr/lib/systemd/system/multi-user.target.wants/a.service', '../a.service'),
      link('etc/systemd/system/timers.target.wants/c.timer', '/usr/lib/systemd/system/c.timer'),
      link('etc/systemd/system/b.service', '/dev/null'),
    ],
  ]);
  expect(contents(tree)).toMatchObject({
    kernels: ['6.12.14', '6.12.9'],
    units: { present: ['a.service', 'c.timer'], enabled: ['a.service', 'c.timer'], masked: ['b.service'] },
  });
});

test('a unit is not enabled by a link that is left over of one that is not there any more', async () => {
  const wants = (name: string) => `etc/systemd/system/multi-user.target.wants/${name}`;
  const tree = await fold([
    [
      link('lib', 'usr/lib'),
      file('usr/lib/systemd/system/getty@.service'),
      file('usr/lib/systemd/system/moved.service'),
      file('usr/local/lib/systemd/system/own.service'),
      // dpkg leaves such a link when it removes a package without its configuration.
      link(wants('chrony.service'), '/usr/lib/systemd/system/chrony.service'),
      link(wants('getty@tty1.a.service'), '/lib/systemd/system/getty@.service'),
      // systemd looks for a unit by the name of the link, wherever it leads.
      link(wants('moved.service'), '/opt/moved.service'),
      link(wants('own.service'), '/usr/local/lib/systemd/system/own.service'),
    ],
  ]);
  expect(contents(tree).units.enabled).toEqual(['getty@tty1.a.service', 'moved.service', 'own.service']);
});

test('the release of an operating system is known where links lead to one of several', async () => {
  const tree = await fold([
    [
      link('etc/os-release', '../usr/lib/os-release'),
      link('usr/lib/os-release', './os.release.d/os-release-coreos'),
      file('usr/lib/os.release.d/os-release-coreos', 'NAME="Example Linux"\nVERSION_ID=42\n'),
    ],
  ]);
  expect(contents(tree).os).toEqual({ NAME: 'Example Linux', VERSION_ID: '42' });
});

test('accounts of sysusers.d have their numbers, but those of passwd come first', async () => {
  const tree = await fold([
    [
      file('etc/passwd', 'root:x:0:0::/root:/bin/sh\nsshd:x:74:74::/:/bin/false\n'),
      file(
        'usr/lib/sysusers.d/a.conf',
        '# all of them\nu root 1\nu sshd 75\nu! tss 59:60 "TPM"\ng wheel 10\n',
      ),
      file('usr/lib/sysusers.d/b.conf', 'u "chrony" -\nu core /home/core\nm core wheel\nr - 500-900\n'),
      file('usr/lib/sysusers.d/c.conf', 'u gone 12\n'),
      file('etc/sysusers.d/c.conf', 'u tss 61\nu own 1:wheel\n'),
    ],
  ]);
  const { users, groups, allocated } = contents(tree);
  expect(Object.fromEntries(users)).toEqual({ root: 0, sshd: 74, tss: 59, own: 1 });
  expect(Object.fromEntries(groups)).toEqual({ root: 1, sshd: 75, wheel: 10 });
  expect(allocated).toEqual(['chrony', 'core']);
});

test('kernel arguments are those for the architecture', async () => {
  const tree = await fold([
    [
      file(
        'usr/lib/bootc/kargs.d/20-b.toml',
        'kargs = ["console=ttyS0"]\nmatch-architectures = ["x86_64"]\n',
      ),
      file('usr/lib/bootc/kargs.d/10-a.toml', 'kargs = ["quiet"]\n'),
      file('usr/lib/bootc/kargs.d/30-c.toml', 'kargs = "quiet"\n'),
    ],
  ]);
  expect(contentsOf(tree, 'amd64').kernelArguments).toEqual(['quiet', 'console=ttyS0']);
  expect(contentsOf(tree, 'arm64').kernelArguments).toEqual(['quiet']);
  expect(contentsOf(tree, 'amd64').unreadable).toEqual([
    { path: '/usr/lib/bootc/kargs.d/30-c.toml', why: 'kargs is not a list of texts', isDatabase: false },
  ]);
});

test.each(['[]x', '{}', '[["/a",{"kind":"other"}]]', '[["/none",{"kind":"unreadable","why":"x"}]]'])(
  'facts that say %s are refused',
  async (text) => {
    const tree = await fold([[directory('etc')]]);
    expect(() => withBaseFacts(tree, gzipSync(text), 'r@sha256:1')).toThrow('r@sha256:1: has no facts');
  },
);
