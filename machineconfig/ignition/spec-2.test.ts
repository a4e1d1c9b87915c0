import { describe, expect, it } from 'vitest';
import { parseIgnition } from './parse.ts';

const v2 = (sections: object, version = '2.2.0') => ({ ignition: { version }, ...sections });
const root = (path: string, fields: object = {}) => ({ filesystem: 'root', path, mode: 420, ...fields });

function translated(raw: unknown) {
  const parsed = parseIgnition(raw);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.config;
}

function pathsOf(raw: unknown) {
  const parsed = parseIgnition(raw);
  return parsed.ok ? [] : parsed.problems.map((problem) => problem.path);
}

describe('Ignition 2', () => {
  it('reverses files, keeps the last of each path, and overwrites', () => {
    const files = [
      root('/a', { contents: { source: 'data:,1' } }),
      root('/b', { contents: { source: 'data:,b' } }),
      root('/a', { contents: { source: 'data:,2', compression: '' } }),
    ];
    expect(translated(v2({ storage: { files } })).storage?.files).toEqual([
      { path: '/a', mode: 420, overwrite: true, contents: { source: 'data:,2' } },
      { path: '/b', mode: 420, overwrite: true, contents: { source: 'data:,b' } },
    ]);
  });

  it('treats a file without contents as an empty one', () => {
    expect(translated(v2({ storage: { files: [root('/a')] } })).storage?.files).toMatchObject([
      { contents: { source: '' } },
    ]);
  });

  it('gives a file without a mode none in 2.2, and 0 before', () => {
    const storage = { files: [{ filesystem: 'root', path: '/a' }] };
    expect(translated(v2({ storage })).storage?.files?.[0]).not.toHaveProperty('mode');
    expect(translated(v2({ storage }, '2.1.0')).storage?.files?.[0]).toMatchObject({ mode: 0 });
  });

  it('gives a file of 2.0 to root unless it says otherwise, and of 2.1 to nobody', () => {
    const storage = { files: [root('/a', { user: { id: 5 } })] };
    expect(translated(v2({ storage }, '2.0.0')).storage?.files).toMatchObject([
      { user: { id: 5 }, group: { id: 0 } },
    ]);
    expect(translated(v2({ storage }, '2.1.0')).storage?.files?.[0]).not.toHaveProperty('group');
  });

  it('reads an empty password hash of 2.0 as none', () => {
    const passwd = { users: [{ name: 'core', passwordHash: '' }] };
    expect(translated(v2({ passwd }, '2.0.0')).passwd?.users?.[0]).not.toHaveProperty('passwordHash');
    expect(translated(v2({ passwd }, '2.1.0')).passwd?.users).toMatchObject([{ passwordHash: '' }]);
  });

  it('reads every field of a user from 2.1 on, and those that 2.0 has', () => {
    const user = {
      name: 'core',
      gecos: 'Core',
      groups: ['wheel'],
      homeDir: '/srv/core',
      noCreateHome: true,
      noLogInit: true,
      noUserGroup: true,
      passwordHash: '*',
      primaryGroup: 'core',
      sshAuthorizedKeys: ['ssh-ed25519 A a'],
      shell: '/bin/sh',
      system: true,
      uid: 900,
    };
    const usersOf = (version: string) => translated(v2({ passwd: { users: [user] } }, version)).passwd?.users;
    for (const version of ['2.1.0', '2.2.0']) expect(usersOf(version)).toEqual([user]);
    const { name, passwordHash, sshAuthorizedKeys } = user;
    expect(usersOf('2.0.0')).toEqual([{ name, passwordHash, sshAuthorizedKeys }]);
  });

  it('makes append an append list', () => {
    const files = [root('/a', { append: true, contents: { source: 'data:,x' } })];
    expect(translated(v2({ storage: { files } })).storage?.files).toMatchObject([
      { overwrite: false, append: [{ source: 'data:,x' }] },
    ]);
  });

  it('collects the drop-ins of a unit, the last of each name first', () => {
    const units = [
      {
        name: 'a.service',
        enable: true,
        dropins: [{ name: '1.conf', contents: '[A]\n' }, { name: '2.conf' }],
      },
      { name: 'b.service' },
      {
        name: 'a.service',
        enabled: false,
        contents: '[Unit]\n',
        dropins: [{ name: '1.conf', contents: '[B]\n' }],
      },
    ];
    expect(translated(v2({ systemd: { units } })).systemd?.units).toEqual([
      {
        name: 'a.service',
        enabled: false,
        contents: '[Unit]\n',
        dropins: [{ name: '1.conf', contents: '[B]\n' }, { name: '2.conf' }],
      },
      { name: 'b.service', dropins: [] },
    ]);
  });

  it('refuses a drop-in that a unit has twice', () => {
    const dropins = [{ name: '1.conf', contents: '[A]\n' }, { name: '2.conf' }, { name: '1.conf' }];
    const units = [{ name: 'a.service' }, { name: 'b.service', dropins }];
    expect(pathsOf(v2({ systemd: { units } }))).toEqual(['$.systemd.units[1].dropins[2]']);
  });

  it('supports the older field enable', () => {
    expect(
      translated(v2({ systemd: { units: [{ name: 'a.service', enable: true }] } })).systemd?.units,
    ).toEqual([{ name: 'a.service', enabled: true, dropins: [] }]);
  });

  it('puts the keys of user core together, the last entry first', () => {
    const users = [
      { name: 'core', sshAuthorizedKeys: ['a', 'b'] },
      { name: 'core', passwordHash: 'x', sshAuthorizedKeys: ['b', 'c'] },
    ];
    expect(translated(v2({ passwd: { users } })).passwd?.users).toEqual([
      { name: 'core', passwordHash: 'x', sshAuthorizedKeys: ['b', 'c', 'a'] },
    ]);
  });

  it.each([
    ['another user', { passwd: { users: [{ name: 'me' }] } }, '$.passwd.users[0]'],
    ['networkd', { networkd: { units: [{ name: 'a.network' }] } }, '$.networkd.units'],
    ['a filesystem', { storage: { filesystems: [{ name: 'data' }] } }, '$.storage.filesystems[0]'],
    [
      'another filesystem',
      { storage: { files: [{ ...root('/a'), filesystem: 'data' }] } },
      '$.storage.files[0]',
    ],
    ['no filesystem', { storage: { files: [{ path: '/a' }] } }, '$.storage.files[0].filesystem'],
    [
      'sectors',
      { storage: { disks: [{ device: '/dev/sda', partitions: [{ number: 1, size: 8 }] }] } },
      '$.storage.disks[0].partitions[0]',
    ],
    [
      'a partition at all, because its sectors are deprecated even as 0',
      { storage: { disks: [{ device: '/dev/sda', partitions: [{ number: 1, sizeMiB: 8 }] }] } },
      '$.storage.disks[0].partitions[0]',
    ],
    [
      'append and overwrite',
      { storage: { files: [root('/a', { append: true, overwrite: true })] } },
      '$.storage.files[0]',
    ],
  ])('refuses %s', (_, sections, path) => {
    expect(pathsOf(v2(sections))).toContain(path);
  });
});
