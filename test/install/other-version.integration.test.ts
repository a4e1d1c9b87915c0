/** bin/other-version in a repository of two commits, whose packages a stand-in installs. */
import { chmod, copyFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { beforeEach, expect, onTestFinished, test } from 'vitest';

const SCRIPT = path.join(import.meta.dirname, '../../bin/other-version');
let root: string;

beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'shale-other-version-'));
  onTestFinished(() => rm(root, { recursive: true }));
  await mkdir(path.join(root, 'bin'));
  await copyFile(SCRIPT, path.join(root, 'bin/other-version'));
  const bootstrap = path.join(root, 'bin/bootstrap');
  await writeFile(bootstrap, '#!/bin/sh\necho installing\necho "$1" >>"$(dirname "$0")/../installed"\n');
  await chmod(bootstrap, 0o755);
  await git('init', '--quiet');
  for (const version of ['old', 'new']) {
    await writeFile(path.join(root, 'version'), version);
    await git('add', '.');
    await git('-c', 'user.name=a', '-c', 'user.email=a@example.com', 'commit', '--quiet', '-m', version);
  }
});

const git = (...args: string[]) => execa('git', args, { cwd: root });
const otherVersion = (...args: string[]) =>
  execa(path.join(root, 'bin/other-version'), args, { cwd: tmpdir(), reject: false });

test('writes the sources of a commit once, and installs the packages of that version', async () => {
  const { stdout: commit } = await git('rev-parse', 'HEAD~1');
  const directory = path.join(root, '.shale/versions', commit);
  for (const installed of ['npm\n', 'npm\nnpm\n']) {
    expect(await otherVersion('HEAD~1')).toMatchObject({
      exitCode: 0,
      stdout: directory,
      stderr: 'installing',
    });
    expect(await readFile(path.join(directory, 'version'), 'utf8')).toBe('old');
    expect(await readFile(path.join(directory, 'installed'), 'utf8')).toBe(installed);
  }
  expect(await readdir(path.dirname(directory))).toEqual([commit]);
});

test.each([
  ['that is not in the repository', ['v9'], 'FROM=v9: this repository has no such tag, branch or commit'],
  ['that is an option', ['--all'], 'FROM=--all: this repository has no such tag, branch or commit'],
  ['that is not named', [''], 'make versions FROM=REF'],
  ['that is left out', [], 'make versions FROM=REF'],
])('refuses a version %s', async (_what, args, why) => {
  const { exitCode, stdout, stderr } = await otherVersion(...args);
  expect([exitCode, stdout]).toEqual([64, '']);
  expect(stderr).toContain(why);
});

test('says of the version that is checked out that it shows less', async () => {
  const { exitCode, stderr } = await otherVersion('HEAD');
  expect(exitCode).toBe(0);
  expect(stderr).toContain('is the commit that is checked out');
});
