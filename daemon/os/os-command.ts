import { ExecaError, execa } from 'execa';
import type { z } from 'zod';

/** A command of the host's image tool failed, was killed or took too long. Its output is in the message. */
export class OsCommandError extends Error {
  override readonly name = 'OsCommandError';
  readonly command: readonly string[];
  readonly exitCode: number | undefined;
  /** Of the system, for a program that could not be started: ENOENT where it is not installed. */
  readonly code: string | undefined;
  readonly stderr: string;

  constructor(command: readonly string[], reason: string, details: OsCommandFailure, options?: ErrorOptions) {
    super(
      [`${command.join(' ')}: ${reason}`, details.stderr.trim()].filter((line) => line !== '').join('\n'),
      options,
    );
    this.command = command;
    this.exitCode = details.exitCode;
    this.code = details.code;
    this.stderr = details.stderr;
  }
}

interface OsCommandFailure {
  readonly exitCode?: number | undefined;
  readonly code?: string | undefined;
  readonly stderr: string;
}

export interface OsCommandOptions {
  readonly timeoutMs: number;
  /** Standard input, by a pipe; without it there is none. In no message, as the command line is. */
  readonly input?: string;
  /** Whether policies run the program in a domain of its own (OVER_PIPES). One with an input is taken for such. */
  readonly isConfined?: boolean;
  /** Added to the environment. In no message either. */
  readonly env?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/**
 * Runs one command of the host and returns its standard output. One that is given up has ended by then, with all that
 * it started: what comes next finds the host as it stays.
 *
 * @throws OsCommandError, or the signal's reason.
 */
export type RunOsCommand = (
  command: readonly [string, ...string[]],
  options: OsCommandOptions,
) => Promise<string>;

/** Time between SIGTERM and SIGKILL for a command that was cancelled: enough to end a transaction of ostree. */
const KILL_AFTER_MS = 10_000;

/**
 * Runs a command with pipes for its standard input, output and error. Node's own are sockets. SELinux closes those that
 * a program may not use in the domain that it is started in, and gives it /dev/null in their place: restorecon(8),
 * which policies run as setfiles_t, then reads no name, labels nothing, and succeeds; and of systemd-tmpfiles(8) nobody
 * learns why it fails. A policy that has a program change its domain lets it use its caller's pipes (`domtrans_pattern`
 * of the reference policy), since that is what shells and init give it.
 */
const OVER_PIPES = [
  'exec 4>&1 5>&2',
  'code=$({ { cat | { "$@" 3>&- 4>&- 5>&-; echo $? >&3; } | cat >&4; } 2>&1 | cat >&5; } 3>&1)',
  'exit "$code"',
].join('; ');

/**
 * @param prefix put before each command, to enter the host's namespaces from a pod (`nsenter -t 1 -m --`).
 * @returns a runner of commands with the C locale.
 */
export function osCommandRunner(prefix: readonly string[] = []): RunOsCommand {
  return async (command, { timeoutMs, input, isConfined = input !== undefined, env, signal }) => {
    signal.throwIfAborted();
    const words = isConfined ? ['sh', '-c', OVER_PIPES, 'sh', ...command] : command;
    const [program = command[0], ...rest] = [...prefix, ...words];
    try {
      const { stdout } = await execa(program, rest, {
        env: { LC_ALL: 'C', ...env },
        ...(input === undefined ? { stdin: 'ignore' } : { input }),
        timeout: timeoutMs,
        cancelSignal: signal,
        forceKillAfterDelay: KILL_AFTER_MS,
        // nsenter hands no signal on, and dies before the command that it forks can ask to be notified of that.
        killDescendants: true,
      });
      return stdout;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof ExecaError)) throw error;
      const reason = error.timedOut ? `took longer than ${timeoutMs / 1000} s` : endOf(error);
      throw new OsCommandError(
        command,
        reason,
        { exitCode: error.exitCode, code: error.code, stderr: String(error.stderr ?? '') },
        { cause: error },
      );
    }
  };
}

function endOf({ exitCode, signal, code }: ExecaError): string {
  if (exitCode !== undefined) return `exit code ${exitCode}`;
  if (signal !== undefined) return `ended by ${signal}`;
  return code === 'ENOENT' ? 'not installed' : `could not be run (${code ?? 'unknown reason'})`;
}

/** @returns JSON that a tool wrote, by a schema. @throws an Error with this message for anything else. */
export function parseJson<T>(schema: z.ZodType<T>, text: string, message: string): T {
  try {
    return schema.parse(JSON.parse(text));
  } catch (cause) {
    throw new Error(message, { cause });
  }
}

/** @returns words as one command of a POSIX shell, none of them expanded. */
export function shellWords(words: readonly string[]): string {
  return words.map(shellWord).join(' ');
}

/** Quoted only where it has to be: an admin reads these lines on the node. */
function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
