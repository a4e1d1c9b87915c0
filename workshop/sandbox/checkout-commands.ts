import type { Command } from 'commander';
import { type Commands, program } from '../../cli/program.ts';

/** What can be typed in a checkout beside the product's own commands. */
export const checkoutCommands: Commands = {
  sandbox: {
    description: 'Run a whole cluster on this machine, to try Shale out and to test it.',
    load: async () => (await import('./command.ts')).sandboxCommand(),
  },
};

/** @returns the whole command line of a checkout, for the reference and for completion. */
export function checkoutProgram(): Promise<Command> {
  return program(() => true, checkoutCommands);
}
