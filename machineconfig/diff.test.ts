import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { diffNodeConfigs } from './diff.ts';
import { emptyNodeConfig, type NodeConfig } from './node-config.ts';

const base: NodeConfig = { ...emptyNodeConfig, name: 'rendered-worker-0' };
const withFiles = (files: Readonly<Record<string, string>>): NodeConfig => ({
  ...base,
  files: new Map(
    Object.entries(files).map(([path, text]) => [
      path,
      { path, contents: Buffer.from(text), mode: 0o644, user: { id: 0 }, group: { name: 'root' } },
    ]),
  ),
});

const anyFiles = fc.dictionary(
  fc.constantFrom('/etc/a', '/etc/b', '/etc/c', '/usr/d'),
  fc.constantFrom('', 'x', 'y'),
);

describe('diffNodeConfigs', () => {
  test('returns additions, changes and removals, in order', () => {
    const changes = diffNodeConfigs(withFiles({ '/b': '1', '/c': '1' }), withFiles({ '/c': '2', '/a': '1' }));
    expect(
      changes.map((change) => (change.kind === 'file' ? `${change.change} ${change.path}` : change.kind)),
    ).toEqual(['added /a', 'removed /b', 'changed /c']);
  });

  test.each<[string, Partial<NodeConfig>, string]>([
    ['kernel arguments', { kernelArguments: ['a'] }, 'kernelArguments'],
    ['kernel type', { kernelType: 'realtime' }, 'kernelType'],
    ['extensions', { extensions: ['usbguard'] }, 'extensions'],
    ['FIPS', { fips: true }, 'fips'],
    ['OS image', { osImageURL: 'r.io/os' }, 'osImageURL'],
  ])('%s', (_name, more, field) => {
    expect(diffNodeConfigs(base, { ...base, ...more })).toEqual([
      { kind: 'field', field, change: 'changed' },
    ]);
  });

  const owner = { user: { id: 0 }, group: { id: 0 } };
  const unit = { name: 'a.service', masked: false, dropins: new Map<string, string>() };
  const one = <T>(key: string, value: T) => new Map([[key, value]]);
  const file = { path: '/a', contents: Buffer.from('x'), mode: 0o644, ...owner };
  const directory = { path: '/d', mode: 0o755, ...owner };
  const link = { path: '/l', target: '/x', hard: false, ...owner };
  const whole: NodeConfig = {
    ...base,
    files: one('/a', file),
    directories: one('/d', directory),
    links: one('/l', link),
    units: one('a.service', { ...unit, contents: 'x', dropins: one('1.conf', 'y') }),
    sshKeys: one('core', ['k', 'l']),
    passwordHashes: one('core', 'h'),
    kernelArguments: ['a', 'b'],
    extensions: ['x', 'y'],
  };

  test.each<[string, Partial<NodeConfig>, string]>([
    ['a byte of a file', { files: one('/a', { ...file, contents: Buffer.from('y') }) }, 'file contents'],
    ['a mode', { files: one('/a', { ...file, mode: 0o600 }) }, 'file mode'],
    ['an owner', { files: one('/a', { ...file, user: { id: 1 } }) }, 'file owner'],
    ['a group', { files: one('/a', { ...file, group: { name: 'wheel' } }) }, 'file owner'],
    [
      'all of a file',
      { files: one('/a', { ...file, contents: Buffer.from(''), mode: 0, group: { id: 1 } }) },
      'file contents,mode,owner',
    ],
    ["a directory's mode", { directories: one('/d', { ...directory, mode: 0o700 }) }, 'directory'],
    ["a directory's owner", { directories: one('/d', { ...directory, group: { id: 1 } }) }, 'directory'],
    ["a link's target", { links: one('/l', { ...link, target: '/y' }) }, 'link'],
    ["a link's kind", { links: one('/l', { ...link, hard: true }) }, 'link'],
    ["a link's owner", { links: one('/l', { ...link, user: { id: 1 } }) }, 'link'],
    [
      "a unit's text",
      { units: one('a.service', { ...unit, contents: 'y', dropins: one('1.conf', 'y') }) },
      'unit',
    ],
    [
      "a unit's enablement",
      { units: one('a.service', { ...unit, contents: 'x', enabled: true, dropins: one('1.conf', 'y') }) },
      'unit',
    ],
    [
      "a unit's mask",
      { units: one('a.service', { ...unit, contents: 'x', masked: true, dropins: one('1.conf', 'y') }) },
      'unit',
    ],
    ['a lost drop-in', { units: one('a.service', { ...unit, contents: 'x' }) }, 'unit'],
    ['a lost key', { sshKeys: one('core', ['k']) }, 'sshKey'],
    ['a changed key', { sshKeys: one('core', ['k', 'm']) }, 'sshKey'],
    ['the order of keys', { sshKeys: one('core', ['l', 'k']) }, 'sshKey'],
    ['a password hash', { passwordHashes: one('core', 'i') }, 'passwordHash'],
    ['the order of kernel arguments', { kernelArguments: ['b', 'a'] }, 'field'],
  ])('%s is one change', (_name, more, expected) => {
    const found = diffNodeConfigs(whole, { ...whole, ...more });
    expect(
      found.map((change) => (change.kind === 'file' ? `file ${change.what.join()}` : change.kind)),
    ).toEqual([expected]);
    expect(found[0]?.change).toBe('changed');
  });

  test('neither the order of extensions nor a copy of the same config is a change', () => {
    expect(diffNodeConfigs(whole, { ...whole, extensions: ['y', 'x'] })).toEqual([]);
    expect(diffNodeConfigs(whole, structuredClone(whole))).toEqual([]);
  });

  test.each([
    ['directories', 'directory'],
    ['links', 'link'],
    ['units', 'unit'],
    ['sshKeys', 'sshKey'],
    ['passwordHashes', 'passwordHash'],
  ] as const)('%s are added and removed', (field, kind) => {
    const without = { ...whole, [field]: new Map() };
    expect(diffNodeConfigs(without, whole)).toMatchObject([{ kind, change: 'added' }]);
    expect(diffNodeConfigs(whole, without)).toMatchObject([{ kind, change: 'removed' }]);
  });

  test('root by name equals root by number', () => {
    const file = {
      path: '/etc/a',
      contents: Buffer.from(''),
      mode: 0o644,
      user: { name: 'root' },
      group: { id: 0 },
    };
    const named: NodeConfig = { ...base, files: new Map([['/etc/a', file]]) };
    expect(diffNodeConfigs(named, withFiles({ '/etc/a': '' }))).toEqual([]);
  });

  test('a drop-in is a change of its unit', () => {
    const units = (text: string): NodeConfig['units'] =>
      new Map([['a.service', { name: 'a.service', masked: false, dropins: new Map([['10-x.conf', text]]) }]]);
    expect(diffNodeConfigs({ ...base, units: units('a') }, { ...base, units: units('b') })).toEqual([
      { kind: 'unit', name: 'a.service', change: 'changed' },
    ]);
  });

  test('a config has no difference from itself, and applying the difference gives the other config', () => {
    fc.assert(
      fc.property(anyFiles, anyFiles, (a, b) => {
        expect(diffNodeConfigs(withFiles(a), withFiles(a))).toEqual([]);
        const applied = new Map(Object.entries(a));
        for (const change of diffNodeConfigs(withFiles(a), withFiles(b))) {
          if (change.kind !== 'file') continue;
          if (change.change === 'removed') applied.delete(change.path);
          else applied.set(change.path, b[change.path] ?? '');
        }
        expect(Object.fromEntries(applied)).toEqual({ ...b });
      }),
    );
  });
});
