import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { file, ignition } from '../testdata/build.ts';
import type { IgnitionConfig, Luks } from './config.ts';
import { lowestIgnitionVersion, parseIgnition } from './parse.ts';

function problemsOf(raw: unknown) {
  const parsed = parseIgnition(raw);
  return parsed.ok ? [] : parsed.problems;
}

function pathsOf(raw: unknown): string[] {
  return problemsOf(raw).map((problem) => problem.path);
}

const files = (...entries: object[]) => ignition({ storage: { files: entries } });
const units = (...entries: object[]) => ignition({ systemd: { units: entries } });

describe('versions', () => {
  it.each(['3.0.0', '3.1.0', '3.2.0', '3.3.0', '3.4.0', '3.5.0', '2.0.0', '2.1.0', '2.2.0'])(
    'takes %s and makes it 3.5.0',
    (version) => {
      const parsed = parseIgnition({ ignition: { version } });
      expect(parsed).toMatchObject({ ok: true, config: { ignition: { version: '3.5.0' } } });
    },
  );

  it.each(['3.6.0', '3.6.0-experimental', '3.5.1', '2.3.0', '1.0.0', '3', '', 'x'])(
    'refuses %s',
    (version) => {
      expect(problemsOf({ ignition: { version } })).toEqual([
        {
          path: '$.ignition.version',
          reason: `${JSON.stringify(version)} is not a supported version`,
          expected: '3.0.0 to 3.5.0, or 2.0.0 to 2.2.0',
        },
      ]);
    },
  );

  it.each([[{}], [null], [[]], ['3.5.0'], [{ ignition: {} }], [{ ignition: { version: 3.5 } }]])(
    'refuses %j, which has none',
    (raw) => {
      expect(problemsOf(raw)).toMatchObject([{ path: '$.ignition.version', reason: 'is missing' }]);
    },
  );
});

describe('reading', () => {
  it('matches keys without regard to case, as Go does', () => {
    const parsed = parseIgnition({
      Ignition: { VERSION: '3.2.0' },
      STORAGE: { Files: [{ Path: '/etc/a' }] },
    });
    expect(parsed).toMatchObject({ ok: true, config: { storage: { files: [{ path: '/etc/a' }] } } });
  });

  it('drops unknown keys, and keys of a later version, with a warning', () => {
    const parsed = parseIgnition({
      ignition: { version: '3.2.0' },
      kernelArguments: { shouldExist: ['a'] },
      nonsense: 1,
    });
    expect(parsed).toMatchObject({
      ok: true,
      config: { ignition: { version: '3.5.0' } },
      warnings: [
        { path: '$.nonsense' },
        { path: '$.kernelArguments', reason: 'has no effect in version 3.2.0' },
      ],
    });
    expect(parsed.ok && 'kernelArguments' in parsed.config).toBe(false);
  });

  it('treats null as absent', () => {
    expect(pathsOf(ignition({ storage: null, systemd: { units: null } }))).toEqual([]);
  });

  it('does not confuse keys with properties that every object inherits', () => {
    const raw = JSON.parse('{"ignition":{"version":"3.5.0"},"__proto__":{"storage":1},"constructor":2}');
    expect(parseIgnition(raw)).toMatchObject({ ok: true });
  });

  it('reports every problem of every kind at once, each once', () => {
    const raw = ignition({
      storage: {
        files: [
          { path: 'etc/a', mode: 'x' },
          'not a file',
          { path: '/etc/b', mode: 0o4755, contents: { source: 'http://example.org' } },
          {},
        ],
      },
      systemd: { units: [{ name: 'a.unit', enabled: 'yes' }] },
    });
    expect(pathsOf(raw).toSorted()).toEqual([
      '$.storage.files[0].mode',
      '$.storage.files[0].path',
      '$.storage.files[1]',
      '$.storage.files[2].contents.source',
      '$.storage.files[2].mode',
      '$.storage.files[3].path',
      '$.systemd.units[0].enabled',
      '$.systemd.units[0].name',
    ]);
  });

  it('never contains a value that could be a secret', () => {
    const secret = 'hunter2';
    const raw = ignition({
      passwd: { users: [{ name: 'core', passwordHash: [secret] }] },
      storage: { files: [{ path: '/a', contents: { source: `data:,${secret} ` } }] },
    });
    expect(problemsOf(raw)).toHaveLength(2);
    expect(JSON.stringify(problemsOf(raw))).not.toContain(secret);
  });
});

describe('validation', () => {
  it.each([
    ['relative path', files({ path: 'a' }), '$.storage.files[0].path'],
    ['climbing path', files({ path: '/a/../b' }), '$.storage.files[0].path'],
    ['trailing slash', files({ path: '/a/' }), '$.storage.files[0].path'],
    ['double slash', files({ path: '/a//b' }), '$.storage.files[0].path'],
    ['dot element', files({ path: '/a/./b' }), '$.storage.files[0].path'],
    ['newline in path', files({ path: '/a\nb' }), '$.storage.files[0].path'],
    ['root', files({ path: '/' }), '$.storage.files[0].path'],
    ['path longer than Linux takes', files({ path: `/${'a/'.repeat(3000)}b` }), '$.storage.files[0].path'],
    ['name longer than Linux takes', files({ path: `/${'a'.repeat(256)}` }), '$.storage.files[0].path'],
    ['negative mode', files({ path: '/a', mode: -1 }), '$.storage.files[0].mode'],
    ['setuid', files({ path: '/a', mode: 0o4755 }), '$.storage.files[0].mode'],
    ['id and name', files({ path: '/a', user: { id: 1, name: 'x' } }), '$.storage.files[0].user'],
    [
      'compression',
      files({ path: '/a', contents: { compression: 'xz' } }),
      '$.storage.files[0].contents.compression',
    ],
    [
      'overwrite without source',
      files({ path: '/a', overwrite: true }),
      '$.storage.files[0].contents.source',
    ],
    ['path twice', files(file('/a', '1'), file('/a', '2')), '$.storage.files[1]'],
    [
      'path as file and as link',
      ignition({ storage: { files: [file('/a', '')], links: [{ path: '/a', target: '/b' }] } }),
      '$.storage.links[0]',
    ],
    [
      'file through a link',
      ignition({ storage: { files: [file('/l/a', '')], links: [{ path: '/l', target: '/b' }] } }),
      '$.storage.files[0].path',
    ],
    [
      'a line break in a link target',
      ignition({ storage: { links: [{ path: '/var/l', target: '/a\nf+ /etc/shadow 0666 - - -' }] } }),
      '$.storage.links[0].target',
    ],
    [
      'a link target that Linux has no room for',
      ignition({ storage: { links: [{ path: '/l', target: `/${'a'.repeat(256)}` }] } }),
      '$.storage.links[0].target',
    ],
    ...['a\nb', 'a b', 'a:b', 'a/b', '0', '-a', '\u007f'].map(
      (name) =>
        [
          `${JSON.stringify(name)} as an owner`,
          files({ path: '/var/a', user: { name } }),
          '$.storage.files[0].user.name',
        ] as [string, object, string],
    ),
    ['link without target', ignition({ storage: { links: [{ path: '/l' }] } }), '$.storage.links[0].target'],
    [
      'file in the place of a unit',
      ignition({
        storage: { files: [file('/etc/systemd/system/a.service', '')] },
        systemd: { units: [{ name: 'a.service', contents: '[Unit]\n' }] },
      }),
      '$.storage.files[0].path',
    ],
    ['unit suffix', units({ name: 'a' }), '$.systemd.units[0].name'],
    ['unit that climbs', units({ name: '../a.service' }), '$.systemd.units[0].name'],
    ['unit twice', units({ name: 'a.service' }, { name: 'a.service' }), '$.systemd.units[1]'],
    ['unit syntax', units({ name: 'a.service', contents: '[Unit' }), '$.systemd.units[0].contents'],
    [
      'drop-in suffix',
      units({ name: 'a.service', dropins: [{ name: 'x' }] }),
      '$.systemd.units[0].dropins[0].name',
    ],
    [
      'drop-in that climbs',
      units({ name: 'a.service', dropins: [{ name: '../x.conf' }] }),
      '$.systemd.units[0].dropins[0].name',
    ],
    [
      'drop-in syntax',
      units({ name: 'a.service', dropins: [{ name: 'x.conf', contents: '[Service]\nnonsense' }] }),
      '$.systemd.units[0].dropins[0].contents',
    ],
    [
      'user twice',
      ignition({ passwd: { users: [{ name: 'core' }, { name: 'core' }] } }),
      '$.passwd.users[1]',
    ],
    ['user that climbs', ignition({ passwd: { users: [{ name: '../x' }] } }), '$.passwd.users[0].name'],
    ['user without name', ignition({ passwd: { users: [{}] } }), '$.passwd.users[0].name'],
    [
      'key twice',
      ignition({ passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['a', 'a'] }] } }),
      '$.passwd.users[0].sshAuthorizedKeys[1]',
    ],
    [
      'overlapping partitions',
      ignition({
        storage: {
          disks: [
            {
              device: '/dev/sda',
              partitions: [
                { number: 1, startMiB: 1, sizeMiB: 10 },
                { number: 2, startMiB: 5, sizeMiB: 10 },
              ],
            },
          ],
        },
      }),
      '$.storage.disks[0].partitions[1]',
    ],
    [
      'RAID level',
      ignition({ storage: { raid: [{ name: 'r', level: '7', devices: ['/dev/sda'] }] } }),
      '$.storage.raid[0].level',
    ],
    [
      'filesystem',
      ignition({ storage: { filesystems: [{ device: '/dev/sda', format: 'zfs' }] } }),
      '$.storage.filesystems[0].format',
    ],
    ['LUKS device', ignition({ storage: { luks: [{ name: 'root' }] } }), '$.storage.luks[0].device'],
    [
      'proxy',
      ignition({ ignition: { version: '3.5.0', proxy: { httpProxy: 'ftp://x' } } }),
      '$.ignition.proxy.httpProxy',
    ],
  ])('refuses: %s', (_, raw, path) => {
    expect(pathsOf(raw)).toEqual([path]);
  });

  it.each([
    ['an empty config', ignition({})],
    ['a file without contents', files({ path: '/a' })],
    ['an instance of a template unit', units({ name: 'a@b-c.service', enabled: true })],
    ['a mask', units({ name: 'a.service', mask: true })],
    ['a sticky directory', ignition({ storage: { directories: [{ path: '/d', mode: 0o1777 }] } })],
    [
      'a filesystem for the root',
      ignition({ storage: { filesystems: [{ device: '/dev/sda', format: 'xfs', path: '/' }] } }),
    ],
    [
      'a relative link',
      ignition({ storage: { links: [{ path: '/etc/localtime', target: '../usr/share/zoneinfo/UTC' }] } }),
    ],
    [
      'an owner of a domain',
      files({ path: '/a', user: { name: 'EXAMPLE\\Ådmin' }, group: { name: 'x@y.z' } }),
    ],
    ['names with dots', files(file('/etc/..a/b..c/.d', ''))],
  ])('takes %s', (_, raw) => {
    expect(problemsOf(raw)).toEqual([]);
  });

  it('warns of an enabled unit without [Install]', () => {
    const parsed = parseIgnition(
      units({ name: 'a.service', enabled: true, contents: '[Service]\nExecStart=/x\n' }),
    );
    expect(parsed).toMatchObject({ ok: true, warnings: [{ path: '$.systemd.units[0].contents' }] });
  });
});

describe('any input', () => {
  const sections = fc.constantFrom(
    'ignition',
    'storage',
    'systemd',
    'passwd',
    'files',
    'units',
    'users',
    'path',
    'links',
  );
  const nested = fc.letrec((tie) => ({
    value: fc.oneof({ depthSize: 'small' }, fc.jsonValue(), tie('list'), tie('object')),
    list: fc.array(tie('value'), { maxLength: 3 }),
    object: fc.dictionary(sections, tie('value'), { maxKeys: 5 }),
  }));

  it('never makes parsing throw', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('3.5.0', '3.0.0', '2.2.0', '2.0.0', '9'),
        nested.object,
        (version, sections) => {
          const parsed = parseIgnition({ ...(sections as object), ignition: { version } });
          expect(parsed.ok || parsed.problems.length > 0).toBe(true);
        },
      ),
      { numRuns: 2000 },
    );
  });

  it('never makes parsing throw, config or not', () => {
    fc.assert(fc.property(fc.jsonValue(), (raw) => void parseIgnition(raw)));
  });
});

const luks = (more: Partial<Luks> = {}): Partial<IgnitionConfig> => ({
  storage: { luks: [{ name: 'data', device: '/dev/vdb', clevis: { tpm2: true }, ...more }] },
});
const formatted = (format: string): Partial<IgnitionConfig> => ({
  storage: { filesystems: [{ device: '/dev/vdb', format, wipeFilesystem: true }] },
});

it.each<[string, Partial<IgnitionConfig>, string]>([
  ['nothing', {}, '3.2.0'],
  ['LUKS', luks(), '3.2.0'],
  ['a file system', formatted('xfs'), '3.2.0'],
  ['a file system that is erased', formatted('none'), '3.3.0'],
  ['kernel arguments', { kernelArguments: { shouldExist: ['quiet'] } }, '3.3.0'],
  ['a LUKS volume that passes discards on', luks({ discard: true }), '3.4.0'],
  ['a key of an S3 access point', luks({ keyFile: { source: 'arn:aws:s3:::bucket/key' } }), '3.4.0'],
  ['a crypto card', luks({ cex: { enabled: true } }), '3.5.0'],
])('the lowest version with %s', (_what, sections, expected) => {
  expect(lowestIgnitionVersion({ ...sections, ignition: { version: '3.5.0' } })).toBe(expected);
});
