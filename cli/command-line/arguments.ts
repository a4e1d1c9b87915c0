import { UsageError } from './exit-codes.ts';

/** Flags of the cluster that may precede the command, as with kubectl; each has a value. */
const LEADING = ['--kubeconfig', '--context', '--namespace', '-n', '--as', '--as-group', '--request-timeout'];

/**
 * Rewrites what the user typed so that the command comes first: only that command is loaded, with its own flags.
 *
 * @param args after the name of the program.
 * @param known names of the commands.
 * @returns `help COMMAND` as `COMMAND --help`; flags of the cluster that precede the command after its own arguments;
 *   anything else as it is.
 * @throws {CommandError} when help is asked for a command that does not exist.
 */
export function argumentsOf(args: readonly string[], known: readonly string[]): readonly string[] {
  const start = leadingWords(args);
  const own = withHelpFlag(args.slice(start), known);
  if (own.length === 0) return args;
  // After `--` they would be arguments.
  const end = own.includes('--') ? own.indexOf('--') : own.length;
  return [...own.slice(0, end), ...args.slice(0, start), ...own.slice(end)];
}

/** @returns how many words the flags before the command are. */
function leadingWords(args: readonly string[]): number {
  let at = 0;
  for (;;) {
    const word = args[at] ?? '';
    if (LEADING.includes(word)) at += 2;
    else if (LEADING.some((flag) => flag.startsWith('--') && word.startsWith(`${flag}=`))) at += 1;
    else return Math.min(at, args.length);
  }
}

function withHelpFlag(args: readonly string[], known: readonly string[]): readonly string[] {
  const [first, command, ...rest] = args;
  if (first !== 'help' || command === undefined || command.startsWith('-')) return args;
  if (!known.includes(command)) {
    throw new UsageError(`no command is named ${command}; shale --help lists the commands`);
  }
  return [command, ...rest, '--help'];
}
