import type { Command } from 'commander';
import { expect, onTestFinished, test, vi } from 'vitest';
import { program } from './program.ts';

function helpOf(command: Command): string[] {
  return [command.helpInformation(), ...command.commands.flatMap(helpOf)];
}

test('no help shows an empty default', async () => {
  const help = helpOf(await program(() => true)).join('\n');
  expect(help).toContain('Usage: shale maintenance start');
  expect(help).toMatch(/\(default:\s+"shale-system"\)/);
  expect(help).not.toMatch(/default:\s+(\[\]|"")/);
});

test('the help lists the processes of the cluster apart, and nothing without a group', async () => {
  const help = (await program(() => false)).helpInformation();
  const [own = '', processes = ''] = help.split('Processes that run in the cluster:');
  for (const name of ['operator', 'machine-os-builder', 'engine-front', 'daemon', 'registry-probe']) {
    expect(processes.split('\n\n')[0]).toMatch(new RegExp(`^  ${name} `, 'm'));
    expect(own).not.toMatch(new RegExp(`^  ${name} `, 'm'));
  }
  expect(own).toMatch(/^Pools and nodes:\n {2}status /m);
  expect(help).not.toContain('\nCommands:');
  expect(help.match(/^Other commands:\n(?: .*\n)*? {2}help \[command\]/m)).not.toBeNull();
});

test.each([
  ['a command that does not exist', ['no-such-command'], "shale: unknown command 'no-such-command'\n"],
  [
    'a command of a group that does not exist',
    ['maintenance', 'no-such-command'],
    "shale: unknown command 'no-such-command'\n",
  ],
  ['a flag that does not exist', ['status', '--no-such-flag'], "shale: unknown option '--no-such-flag'\n"],
  [
    'a flag of one of a group',
    ['maintenance', 'end', 'worker-0', '--no-such-flag'],
    "shale: unknown option '--no-such-flag'\n",
  ],
  ['a missing argument', ['rollback'], "shale: missing required argument 'pool'\n"],
  [
    'a duration without a unit',
    ['status', '--timeout', '5'],
    "shale: option '--timeout <span>' argument '5' is invalid. Expected a duration such as 90s, 30m, 2h, 1h30m or 7d\n",
  ],
])('%s is reported as every other error is (%o)', async (_, args, message) => {
  const printed: string[] = [];
  const write = vi
    .spyOn(process.stderr, 'write')
    .mockImplementation((text) => printed.push(String(text)) > 0);
  onTestFinished(() => write.mockRestore());
  const shale = await program(() => true);
  await expect(shale.parseAsync(args, { from: 'user' })).rejects.toMatchObject({ exitCode: 1 });
  expect(printed.at(0)).toBe(message);
});
