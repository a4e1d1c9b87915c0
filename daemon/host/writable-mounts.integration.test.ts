/** Mounts of a namespace of its own: what unshare and remount do, which no value shows. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { deadline, patience } from '../../test/fixtures/patience.ts';

const notRoot = process.getuid?.() !== 0;
if (notRoot) process.stderr.write('skipped: only root mounts anything\n');

/**
 * Runs in mounts of its own, where its first argument is read-only. @returns how each call ended, and what was run for
 * it.
 */
const PROGRAM = `
  import { execFileSync } from 'node:child_process';
  import { writeFileSync } from 'node:fs';
  import path from 'node:path';
  import { makeWritable, unlockUsr } from ${JSON.stringify(path.join(import.meta.dirname, 'writable-mounts.ts'))};
  const [directory, call, does] = process.argv.slice(1);
  const ran = [];
  const run = async (command) => {
    ran.push(command.join(' '));
    // As ostree's overlay lets it be written to.
    if (does === 'yes') execFileSync('mount', ['-o', 'remount,bind,rw', directory]);
    return '';
  };
  const signal = AbortSignal.timeout(${patience(20_000)});
  const how = await (call === 'unlockUsr'
    ? unlockUsr(path.dirname(directory), run, signal)
    : makeWritable(directory, { onHost: call === 'onHost', ...(does === 'yes' ? {} : { run }), signal })
  ).then(() => 'done', (error) => error.name + ': ' + error.message);
  let isWritable = true;
  try { writeFileSync(path.join(directory, 'written'), ''); } catch { isWritable = false; }
  process.stdout.write(JSON.stringify({ how, ran, isWritable }));
`;
const READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"';

describe.skipIf(notRoot)('a directory that is mounted read-only', () => {
  let usr: string;
  beforeEach(async () => {
    const root = await mkdtemp(path.join(tmpdir(), 'read-only-'));
    onTestFinished(() => rm(root, { recursive: true }));
    usr = path.join(root, 'usr');
    await mkdir(usr);
  });
  const inReadOnly = async (call: string, does: 'yes' | 'no') => {
    const node = [process.execPath, '--input-type=module', '--eval', PROGRAM, usr, call, does];
    const enter = ['--mount', '--propagation=private', '--', 'sh', '-c', READ_ONLY, usr];
    const { stdout } = await execa('unshare', [...enter, ...node], { cancelSignal: deadline(30_000) });
    return JSON.parse(stdout) as { how: string; ran: string[]; isWritable: boolean };
  };

  test('is made writable among the mounts of the daemon', async () => {
    expect(await inReadOnly('inPod', 'yes')).toEqual({ how: 'done', ran: [], isWritable: true });
    expect(await inReadOnly('inPod', 'no')).toMatchObject({ ran: [`mount -o remount,bind,rw ${usr}`] });
  });

  test('is left as it is where the mounts are the host’s own', async () => {
    const { how, ran, isWritable } = await inReadOnly('onHost', 'no');
    expect(how).toMatch(/^Error: .* is read-only; run the daemon in its own mount namespace/);
    expect([ran, isWritable]).toEqual([[], false]);
  });

  test.each([
    ['is unlocked by ostree', 'yes', /^done$/],
    ['has to be writable in the pod then', 'no', /^Error: .* though the host has unlocked it/],
  ] as const)('%s', async (_what, does, expected) => {
    const { how, ran } = await inReadOnly('unlockUsr', does);
    expect(how).toMatch(expected);
    expect(ran).toEqual(['ostree admin unlock']);
  });
});
