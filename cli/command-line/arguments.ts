import { CommandError, exitCodes } from './exit-codes.ts';

/**
 * Rewrites what the user typed so that the command comes first: only that command is loaded, with its own flags.
 *
 * @param args after the name of the program.
 * @param known names of the commands.
 * @returns `help COMMAND` as `COMMAND --help`; anything else as it is.
 * @throws {CommandError} when help is asked for a command that does not exist.
 */
export function argumentsOf(args: readonly string[], known: readonly string[]): readonly string[] {
  const [first, command, ...rest] = args;
  if (first !== 'help' || command === undefined || command.startsWith('-')) return args;
  if (!known.includes(command)) {
    throw new CommandError(
      `no command is named ${command}; shale --help lists the commands`,
      exitCodes.usage,
    );
  }
  return [command, ...rest, '--help'];
}
