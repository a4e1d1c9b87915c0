import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { diffNodeConfigs } from './diff.ts';
import { emptyNodeConfig } from './empty-config.ts';
import type { NodeConfig } from './node-config.ts';

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
  test('tells additions, changes and removals, in order', () => {
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

  test('root by name and by number is one', () => {
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

  test('nothing differs from itself, and applying the difference gives the other', () => {
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
