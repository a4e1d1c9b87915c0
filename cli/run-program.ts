import { CommanderError } from 'commander';
import { LeadershipLost } from '../cluster/leader-election.ts';
import { StartupError } from '../operator/preconditions.ts';
import { CommandError, exitCodes } from './command-line/exit-codes.ts';
import { type Commands, program } from './program.ts';

/**
 * Runs the command that this process was called with, and sets its exit code.
 *
 * @param more commands beside Shale's own.
 */
export async function runProgram(more: Commands = {}): Promise<void> {
  try {
    const [, , called] = process.argv;
    const shale = await program((name) => name === called, more);
    await shale.parseAsync(process.argv);
  } catch (error) {
    process.exitCode = report(error);
  }
}

function report(error: unknown): number {
  if (error instanceof CommanderError) {
    // commander has printed its message already; help and version end here too, with exit code 0.
    return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
  }
  if (error instanceof CommandError) {
    process.stderr.write(`shale: ${error.message}\n`);
    return error.exitCode;
  }
  if (error instanceof StartupError) {
    process.stderr.write(`shale: ${error.message}\n`);
    return error.kind === 'unavailable' ? exitCodes.unavailable : exitCodes.failed;
  }
  if (error instanceof LeadershipLost) {
    process.stderr.write(`shale: ${error.message}\n`);
    return exitCodes.failed;
  }
  process.stderr.write(`shale: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  return exitCodes.software;
}
