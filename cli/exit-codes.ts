/** What shale's exit code means; documented in docs/reference/cli.md. */
export const exitCodes = {
  ok: 0,
  /** The work was done and its result is a "no": an invalid MachineConfig, a tour step that failed. */
  failed: 1,
  /** The call can't be understood: unknown option, missing argument, a file that is not there or no YAML. */
  usage: 2,
  /** A part that is needed is not there: a package, a cluster, a permission (EX_UNAVAILABLE of sysexits.h). */
  unavailable: 69,
  /** A mistake in Shale itself (EX_SOFTWARE): printed with its stack, and never to be taken for an answer. */
  software: 70,
  /** Ended by Ctrl-C. */
  interrupted: 130,
} as const;

/** An error whose message is all a person needs: printed as one line, without a stack. */
export class CommandError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode: number = exitCodes.failed, options?: ErrorOptions) {
    super(message, options);
    this.name = 'CommandError';
    this.exitCode = exitCode;
  }
}
