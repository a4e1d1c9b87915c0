import { expect, test } from 'vitest';
import { OsCommandError, type RunOsCommand } from '../os-command.ts';
import { retryRemount } from './ostree.ts';

const options = { timeoutMs: 1_000, signal: new AbortController().signal };
const BUSY = 'error: Remounting /sysroot read-write: Device or resource busy';

/** A command that fails so often with this on its standard error. */
function failing(times: number, stderr: string) {
  let runs = 0;
  const run: RunOsCommand = async (command) => {
    runs += 1;
    if (runs <= times) throw new OsCommandError(command, 'exit code 1', { exitCode: 1, stderr });
    return 'done';
  };
  return { run: retryRemount(run), runs: () => runs };
}

test('a command whose remount the kernel refused for a moment is run again', async () => {
  const { run, runs } = failing(2, BUSY);
  expect(await run(['ostree', 'prune'], options)).toBe('done');
  expect(runs()).toBe(3);
});

test('one whose remount stays refused fails with the reason', async () => {
  const { run, runs } = failing(9, BUSY);
  await expect(run(['ostree', 'prune'], options)).rejects.toThrow('exit code 1');
  expect(runs()).toBe(5);
});

test.each(['error: Writing content object: Device or resource busy', 'error: min-free-space-percent', ''])(
  'one that fails for another reason (%j) is not run again',
  async (stderr) => {
    const { run, runs } = failing(1, stderr);
    await expect(run(['ostree', 'commit'], options)).rejects.toThrow('exit code 1');
    expect(runs()).toBe(1);
  },
);
