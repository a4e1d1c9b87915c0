import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  PACKAGES_TABLE,
  type RpmTags,
  rpmHeader,
  sqliteDatabase,
} from '../../../test/fixtures/rpm-database.ts';
import { seed } from '../../../test/fixtures/sample.ts';
import { DatabaseError, MOST_PACKAGES } from '../package.ts';
import { parseApkInstalled } from './apk-installed.ts';
import { parseDpkgStatus } from './dpkg-status.ts';
import { readRpmDatabase } from './rpm-database.ts';
import { parseRpmHeader } from './rpm-header.ts';

describe("dpkg's status", () => {
  test('has what has files in the image, whatever the fields are next to it', () => {
    const packages = parseDpkgStatus(
      [
        'Package: libc6',
        'Status: install ok installed',
        'Architecture: amd64',
        'Version: 2.36-9+deb12u14',
        'Description: GNU C Library',
        ' Package: not this one',
        ' Version: 1',
        '',
        'Package: removed',
        'Status: deinstall ok config-files',
        'Version: 1',
        '',
        'Package: held',
        'Status: hold ok installed',
        'Version: 1:2.0',
        'Architecture: all',
        '',
        'Package: half',
        'Status: install reinstreq half-configured',
        'Version: 3',
      ].join('\n'),
    );
    expect(packages).toEqual([
      { name: 'half', version: '3', architecture: '' },
      { name: 'held', version: '1:2.0', architecture: 'all' },
      { name: 'libc6', version: '2.36-9+deb12u14', architecture: 'amd64' },
    ]);
  });

  test('a file of status.d has no status', () => {
    expect(parseDpkgStatus('Package: base-files\nVersion: 12.4\nArchitecture: amd64\n')).toHaveLength(1);
  });

  test('with more packages than any distribution has is refused', () => {
    const text = 'Package: a\nVersion: 1\n\n'.repeat(MOST_PACKAGES + 1);
    expect(() => parseDpkgStatus(text)).toThrow(`has more than ${MOST_PACKAGES} packages`);
    expect(() => parseDpkgStatus(`Package: ${'a'.repeat(2000)}\nVersion: 1\n`)).toThrow('a field of 2000');
  });
});

test("apk's list has names, versions and architectures", () => {
  expect(
    parseApkInstalled(
      'C:Q1abc\nP:musl\nV:1.2.5-r0\nA:x86_64\nF:lib\nR:ld.so\n\nP:zlib\nV:1.3-r2\nA:x86_64\n\n',
    ),
  ).toEqual([
    { name: 'musl', version: '1.2.5-r0', architecture: 'x86_64' },
    { name: 'zlib', version: '1.3-r2', architecture: 'x86_64' },
  ]);
});

const bash: RpmTags = {
  name: 'bash',
  version: '5.2.26',
  release: '1.fc41',
  epoch: 2,
  vendor: 'Fedora Project',
  architecture: 'x86_64',
};
const BASH = {
  name: 'bash',
  version: '2:5.2.26-1.fc41',
  architecture: 'x86_64',
  vendor: 'Fedora Project',
};

describe("RPM's header", () => {
  test('has name, epoch, version, release, architecture and vendor', () => {
    expect(parseRpmHeader(rpmHeader(bash))).toEqual(BASH);
    expect(parseRpmHeader(rpmHeader({ name: 'bash', version: '5.2.26', release: '1.fc41' }))).toEqual({
      name: 'bash',
      version: '5.2.26-1.fc41',
      architecture: '',
    });
  });

  test('has what stands behind the signed region in place of what the region has, as RPM reads it', () => {
    expect(parseRpmHeader(rpmHeader(bash, { version: '9' }))).toEqual({ ...BASH, version: '2:9-1.fc41' });
  });

  test.each([
    ['no bytes', Buffer.alloc(0)],
    ['bytes that end in the index', rpmHeader(bash).subarray(0, 50)],
    ['bytes that end in the data', rpmHeader(bash).subarray(0, -3)],
    ['a name of another type', rpmHeader({ ...bash, name: 1 })],
    ['no release', rpmHeader({ name: 'bash', version: '1' })],
  ])('with %s is refused', (_, bytes) => {
    expect(() => parseRpmHeader(bytes)).toThrow(DatabaseError);
  });

  test('any bytes are a package or refused, and nothing else happens', () => {
    const whole = rpmHeader(bash);
    const damaged = fc
      .array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { minLength: 1, maxLength: 6 })
      .map((changes) => {
        const bytes = Buffer.from(whole);
        for (const [at, value] of changes) bytes[at] = value;
        return bytes;
      });
    fc.assert(
      fc.property(fc.oneof(damaged, fc.uint8Array({ maxLength: 200 })), (bytes) => {
        try {
          expect(Object.keys(parseRpmHeader(bytes))).toContain('version');
        } catch (error) {
          expect(error).toBeInstanceOf(DatabaseError);
        }
      }),
      { seed, numRuns: 500 },
    );
  });
});

describe("RPM's database", () => {
  test('has the packages of its table, with a write-ahead log and without', () => {
    expect(readRpmDatabase(sqliteDatabase(PACKAGES_TABLE, [rpmHeader(bash)]))).toEqual([BASH]);
    expect(
      readRpmDatabase(sqliteDatabase(`PRAGMA journal_mode = WAL; ${PACKAGES_TABLE}`, [rpmHeader(bash)])),
    ).toEqual([BASH]);
    expect(readRpmDatabase(sqliteDatabase(PACKAGES_TABLE))).toEqual([]);
  });

  test.each([
    ['another table', 'CREATE TABLE t (a)', 'has no table Packages'],
    [
      'a view that never ends',
      'CREATE VIEW Packages AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS blob FROM n',
      'has no table Packages',
    ],
    [
      'a column that is computed',
      "CREATE TABLE 'Packages' (hnum INTEGER PRIMARY KEY, blob BLOB AS (zeroblob(1000000000)))",
      'has no table Packages',
    ],
  ])('with %s is refused', (_, sql, why) => {
    expect(() => readRpmDatabase(sqliteDatabase(sql))).toThrow(why);
  });

  test('with rows that are no headers is refused', () => {
    const rows = sqliteDatabase(`${PACKAGES_TABLE}; INSERT INTO Packages (blob) VALUES ('text')`);
    expect(() => readRpmDatabase(rows)).toThrow('a package that is no header');
    expect(() => readRpmDatabase(sqliteDatabase(PACKAGES_TABLE, [new Uint8Array(9)]))).toThrow(DatabaseError);
  });

  test('any damage is refused or read, and takes no time', () => {
    const whole = sqliteDatabase(
      PACKAGES_TABLE,
      Array.from({ length: 40 }, () => rpmHeader(bash)),
    );
    const damage = fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(damage, (changes) => {
        const bytes = Uint8Array.from(whole);
        for (const [at, value] of changes) bytes[at] = value;
        try {
          readRpmDatabase(bytes);
        } catch (error) {
          expect(error).toBeInstanceOf(DatabaseError);
        }
      }),
      { seed, numRuns: 300 },
    );
  });

  test('a file that is cut off, or of nothing, is refused', () => {
    const whole = sqliteDatabase(
      PACKAGES_TABLE,
      Array.from({ length: 40 }, () => rpmHeader(bash)),
    );
    for (const size of [0, 10, 100, 4096, 8192]) {
      expect(() => readRpmDatabase(whole.slice(0, size))).toThrow(DatabaseError);
    }
  });
});
