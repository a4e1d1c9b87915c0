import { describe, expect, test } from 'vitest';
import { diffContents, isDifferent } from './diff-contents.ts';
import type { ImageContents, PackageDatabase } from './image-contents.ts';
import { packageChanges } from './package-changes.ts';
import { summaryOf } from './summary.ts';

const NAMES = { from: 'one', to: 'two' };

const rpm = (
  ...packages: (readonly [name: string, version: string, architecture?: string])[]
): PackageDatabase => ({
  format: 'rpm',
  path: '/usr/lib/sysimage/rpm/rpmdb.sqlite',
  packages: packages.map(([name, version, architecture = 'x86_64']) => ({ name, version, architecture })),
});

function contents(given: Partial<ImageContents> = {}): ImageContents {
  return {
    os: { PRETTY_NAME: 'Example OS 41' },
    databases: [rpm(['bash', '5-1'])],
    unreadable: [],
    kernels: ['6.12.9'],
    kernelArguments: ['quiet'],
    units: { present: ['a.service'], enabled: ['a.service'], masked: [] },
    presets: [],
    users: new Map([['chrony', 101]]),
    groups: new Map(),
    allocated: [],
    ...given,
  };
}

describe('of packages', () => {
  test.each<[string, PackageDatabase, PackageDatabase, readonly string[]]>([
    ['a newer version', rpm(['a', '1-1']), rpm(['a', '1-2']), ['upgraded a x86_64 1-1 1-2']],
    ['an older epoch', rpm(['a', '1:1-1']), rpm(['a', '2-1']), ['downgraded a x86_64 1:1-1 2-1']],
    [
      'the same version, written otherwise',
      rpm(['a', '1.0-1']),
      rpm(['a', '1.00-1']),
      ['changed a x86_64 1.0-1 1.00-1'],
    ],
    ['another architecture', rpm(['a', '1-1', 'noarch']), rpm(['a', '1-1']), ['changed a x86_64 1-1 1-1']],
    [
      'a kernel beside the one that stays',
      rpm(['kernel', '6.12.9-1'], ['kernel', '6.11.1-1']),
      rpm(['kernel', '6.12.9-1'], ['kernel', '6.12.14-1']),
      ['upgraded kernel x86_64 6.11.1-1 6.12.14-1'],
    ],
    [
      'two kernels for one',
      rpm(['kernel', '1-1']),
      rpm(['kernel', '2-1'], ['kernel', '3-1']),
      ['removed kernel x86_64 1-1', 'added kernel x86_64 2-1', 'added kernel x86_64 3-1'],
    ],
    [
      'two architectures of one package',
      rpm(['libc', '1-1', 'i686'], ['libc', '1-1']),
      rpm(['libc', '2-1', 'i686'], ['libc', '2-1']),
      ['upgraded libc i686 1-1 2-1', 'upgraded libc x86_64 1-1 2-1'],
    ],
    [
      'another package manager',
      rpm(['a', '1-1']),
      { ...rpm(['a', '1-1']), format: 'dpkg' },
      ['added a x86_64 1-1', 'removed a x86_64 1-1'],
    ],
    [
      'a key for another, whose versions are their fingerprints',
      rpm(['gpg-pubkey', '2-1', ''], ['gpg-pubkey', '7-1', '']),
      rpm(['gpg-pubkey', '1-1', ''], ['gpg-pubkey', '7-1', '']),
      ['removed gpg-pubkey  2-1', 'added gpg-pubkey  1-1'],
    ],
    ['nothing', rpm(['a', '1-1']), rpm(['a', '1-1']), []],
  ])('%s', (_, before, after, expected) => {
    const changes = packageChanges([before], [after]);
    expect(
      changes.map(({ change, name, architecture, from, to }) =>
        [change, name, architecture, from, to].filter((part) => part !== undefined).join(' '),
      ),
    ).toEqual(expected);
  });
});

test('nothing is claimed of packages that one image does not tell', () => {
  const unreadable = [{ path: '/var/lib/rpm/Packages', why: 'is old', isDatabase: true }];
  const diff = diffContents(contents({ databases: [], unreadable }), contents(), NAMES);
  expect(diff.packages).toBeUndefined();
  expect(diff.unknown).toEqual(['one: /var/lib/rpm/Packages is old']);
  expect(isDifferent(diff)).toBe(false);
  const none = diffContents(contents(), contents({ databases: [] }), NAMES);
  expect(none.unknown).toEqual(['two has no package database of dpkg, RPM or apk']);
  const settings = [{ path: '/usr/lib/bootc/kargs.d/a.toml', why: 'is broken', isDatabase: false }];
  expect(diffContents(contents(), contents({ unreadable: settings }), NAMES).packages).toEqual([]);
});

test('a unit that is not there any more is told from one that is only not enabled', () => {
  const units = { present: ['b.service'], enabled: ['b.service'], masked: ['c.service'] };
  const before = {
    ...units,
    present: ['a.service', 'b.service', 'd.service'],
    enabled: ['a.service', 'd.service'],
    masked: [],
  };
  const after = { ...units, present: ['b.service', 'd.service'] };
  expect(diffContents(contents({ units: before }), contents({ units: after }), NAMES).units).toEqual({
    enabled: ['b.service'],
    disabled: ['d.service'],
    removed: ['a.service'],
    masked: ['c.service'],
    unmasked: [],
  });
});

test.each<[Partial<ImageContents>, Partial<ImageContents>, string]>([
  [{}, {}, 'no difference in packages, kernel, units or users'],
  [{}, { databases: [rpm(['bash', '5-2'])] }, '1 package (1 upgraded)'],
  [{}, { databases: [rpm(['a', '1-1'], ['b', '1-1'])] }, '3 packages (2 added, 1 removed)'],
  [{}, { databases: [] }, 'packages unknown'],
  [{}, { kernels: ['6.12.14'] }, 'kernel 6.12.9 -> 6.12.14'],
  [{}, { kernels: ['6.12.14', '6.12.9'] }, 'kernel 6.12.14 added'],
  [{}, { kernels: [] }, 'kernel 6.12.9 removed'],
  [{}, { kernelArguments: ['quiet', 'a'] }, '1 kernel argument'],
  [{}, { kernelArguments: ['a'] }, '2 kernel arguments'],
  [{}, { units: { present: [], enabled: [], masked: [] } }, '1 unit no longer enabled'],
  [{ units: { present: [], enabled: [], masked: [] } }, {}, '1 unit enabled'],
  [{}, { units: { present: ['a.service'], enabled: ['a.service'], masked: ['b.service'] } }, '1 unit masked'],
  [{}, { users: new Map([['chrony', 998]]) }, '1 user or group with another number'],
  [
    {},
    { users: new Map([['chrony', 998]]), groups: new Map([['x', 1]]) },
    '1 user or group with another number',
  ],
  [{}, { users: new Map() }, '1 user or group added or removed'],
  [{}, { allocated: ['sshd'] }, '1 user or group allocated at boot'],
  [{}, { presets: ['enable a.service'] }, '1 preset'],
  [{}, { os: { NAME: 'Example', VERSION_ID: '42' } }, 'Example OS 41 -> Example 42'],
])('%j and %j: %s', (before, after, summary) => {
  const diff = diffContents(contents(before), contents(after), NAMES);
  expect(summaryOf(diff, false)).toContain(summary);
  expect(summaryOf(diff, true)).toBe(`${summaryOf(diff, false)}, reboot`);
});
