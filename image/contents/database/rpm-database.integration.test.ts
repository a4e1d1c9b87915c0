/** rpm makes and lists the databases here: those of the other tests are Shale's own idea of the format. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { expect, onTestFinished, test } from 'vitest';
import { patience } from '../../../test/fixtures/patience.ts';
import { readRpmDatabase } from './rpm-database.ts';

/** A package as a file for rpmbuild describes it. */
interface Described {
  readonly name: string;
  readonly version: string;
  readonly architecture: string;
  readonly epoch?: number;
  readonly requires?: number;
  readonly files?: number;
}

const PACKAGES: readonly Described[] = [
  { name: 'epoch', version: '1.0', epoch: 3, architecture: 'x86_64' },
  { name: 'tilde', version: '1.0~rc1', architecture: 'noarch' },
  { name: 'caret', version: '1.0^20261129git1', architecture: 'noarch' },
  { name: 'libc', version: '2.41', architecture: 'x86_64' },
  { name: 'libc', version: '2.41', architecture: 'i686' },
  { name: 'kernel', version: '6.12.9', architecture: 'x86_64' },
  { name: 'kernel', version: '6.12.14', architecture: 'x86_64' },
  // A header with lists that fill several pages of SQLite.
  { name: 'large', version: '1', architecture: 'noarch', requires: 500, files: 2000 },
];

test('the packages of a database are those that rpm lists', { timeout: patience(120_000) }, async () => {
  const dir = await mkdtemp(path.join(tmpdir(), 'rpm-database-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  const built: string[] = [];
  for (const [index, described] of PACKAGES.entries()) {
    built.push(...(await build(path.join(dir, String(index)), described)));
  }
  const rpm = (args: readonly string[]) =>
    execa('rpm', ['--dbpath', path.join(dir, 'db'), '--define', '_db_backend sqlite', ...args]);
  await rpm([
    '-i',
    '--justdb',
    '--nodeps',
    '--noscripts',
    '--ignorearch',
    '--force',
    '--nosignature',
    ...built,
  ]);
  const { stdout } = await rpm([
    '-qa',
    '--qf',
    '%{NAME} %|EPOCH?{%{EPOCH}:}:{}|%{VERSION}-%{RELEASE} %{ARCH} %{VENDOR}\\n',
  ]);
  const found = readRpmDatabase(await readFile(path.join(dir, 'db/rpmdb.sqlite')));
  const lines = found.map(({ name, version, architecture, vendor }) =>
    [name, version, architecture, vendor].join(' '),
  );
  expect(lines).toHaveLength(PACKAGES.length);
  expect(lines.toSorted()).toEqual(stdout.split('\n').toSorted());
});

/** @returns the paths of the packages that rpmbuild made. */
async function build(dir: string, described: Described): Promise<readonly string[]> {
  const { name, version, architecture, epoch, requires = 0, files = 0 } = described;
  const lines = [
    `Name: ${name}`,
    ...(epoch === undefined ? [] : [`Epoch: ${epoch}`]),
    `Version: ${version}`,
    'Release: 1.fc43',
    'Summary: For a test',
    'License: Apache-2.0',
    'Vendor: Example',
    ...Array.from({ length: requires }, (_, index) => `Requires: lib${index}.so.1()(64bit) >= ${index}`),
    '%description',
    'For a test.',
    '%files',
    ...Array.from({ length: files }, (_, index) => `%ghost /usr/share/${name}/${index}`),
  ];
  await mkdir(dir);
  const spec = path.join(dir, `${name}.spec`);
  await writeFile(spec, `${lines.join('\n')}\n`);
  const { stdout } = await execa('rpmbuild', [
    '-bb',
    `--target=${architecture}`,
    ...['--define', `_topdir ${dir}`, '--define', '_rpmfilename %{NAME}.rpm'],
    spec,
  ]);
  return [...stdout.matchAll(/^Wrote: (.*)$/gm)].flatMap(([, file]) => file ?? []);
}
