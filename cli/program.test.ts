import type { Command } from 'commander';
import { expect, test } from 'vitest';
import { program } from './program.ts';

function helpOf(command: Command): string[] {
  return [command.helpInformation(), ...command.commands.flatMap(helpOf)];
}

test('no help shows an empty default', async () => {
  const help = helpOf(await program(() => true)).join('\n');
  expect(help).toContain('Usage: shale maintenance start');
  expect(help).toContain('(default: "shale-system")');
  expect(help).not.toMatch(/default:\s+(\[\]|"")/);
});
