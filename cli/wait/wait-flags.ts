import type { Command } from 'commander';
import { timeoutFlag } from '../command-line/quantities.ts';

/** Flags of commands that can wait for what they have begun. */
export interface WaitFlags {
  readonly wait?: boolean;
  /** ms */
  readonly timeout: number;
}

/** @returns the command with `--wait` and `--timeout`. @param until what is waited for, for the help. */
export function withWaitFlags(command: Command, until: string): Command {
  return command.option('--wait', `wait until ${until}`).addOption(timeoutFlag('2h'));
}
