import type { Command } from 'commander';
import { expect, test } from 'vitest';
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
