/** The exit codes of shale; docs/reference/exit-codes.md is generated from them. */
export const exitCodes = {
  ok: 0,
  /** The command ran and the check failed: an invalid MachineConfig, a failed step of the tour. */
  failed: 1,
  /** Invalid usage: an unknown option, a missing argument, a file that does not exist or is not YAML. */
  usage: 2,
  /** Something required is not available: a package, a cluster, a permission (EX_UNAVAILABLE of sysexits.h). */
  unavailable: 69,
  /** A bug in Shale (EX_SOFTWARE), printed with its stack trace; never the result of a check. */
  software: 70,
  /** Interrupted by Ctrl-C. */
  interrupted: 130,
  /** Nothing reads the output any more: 128 and the number of SIGPIPE. */
  brokenPipe: 141,
} as const;

/** Their meanings for the reference, as Markdown. */
export const exitCodeMeanings: Readonly<Record<keyof typeof exitCodes, string>> = {
  ok: 'success; for `diff`: no changes',
  failed:
    'the check failed: `validate` found problems, a pool can’t be rendered or can’t apply the change, nodes would refuse it, `plan --fail-on` found what it names, or could not tell, a step of the tour failed, a wait timed out or can’t end; for `diff`: there are changes',
  usage:
    'invalid usage: an unknown flag, a missing argument, a file that does not exist, is not YAML or has no objects, an unknown pool or node, no pool at all; for `diff` also: a pool can’t be rendered',
  unavailable: 'something required is not available: a cluster, a package, a permission',
  software: 'a bug in Shale, printed with the stack trace to report',
  interrupted: 'interrupted by Ctrl-C',
  brokenPipe: 'nothing reads the output any more, as after `| head -1`',
};

/** An error whose message is enough for the user: printed as one line, without a stack. */
export class CommandError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode: number = exitCodes.failed, options?: ErrorOptions) {
    super(message, options);
    this.name = 'CommandError';
    this.exitCode = exitCode;
  }
}

/** A command that was called in a way that can't be carried out. */
export class UsageError extends CommandError {
  constructor(message: string, options?: ErrorOptions) {
    super(message, exitCodes.usage, options);
  }
}

/**
 * Reads something that a user gave.
 *
 * @param why the message for what `read` throws, for people; undefined: it is a bug.
 * @throws {UsageError} with that message; what `read` throws.
 */
export function asGiven<T>(read: () => T, why: (error: unknown) => string | undefined): T {
  try {
    return read();
  } catch (cause) {
    const message = why(cause);
    throw message === undefined ? cause : new UsageError(message, { cause });
  }
}

/** @param known names of the existing pools. @returns the error for a pool that does not exist. */
export function noSuchPool(name: string, known: readonly string[]): UsageError {
  return new UsageError(`no pool is named ${name}; the pools are: ${known.join(', ') || 'none'}`);
}

/** @param pools all that exist. @returns the one of the name. @throws {UsageError} when there is none. */
export function poolNamed<T extends { readonly metadata: { readonly name: string } }>(
  pools: readonly T[],
  name: string,
): T {
  const pool = pools.find(({ metadata }) => metadata.name === name);
  if (pool !== undefined) return pool;
  throw noSuchPool(
    name,
    pools.map(({ metadata }) => metadata.name),
  );
}
