/** What shale's exit code means, in the code and, for people, in docs/reference/exit-codes.md. */
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

/** The same for a reader of the reference; Markdown. */
export const exitCodeMeanings: Readonly<Record<keyof typeof exitCodes, string>> = {
  ok: 'done; of `diff`: nothing changes',
  failed:
    'the answer is a no: `validate` found problems, a pool can’t be rendered or take the change, nodes would refuse it, `plan --fail-on` found a costly pool, a tour’s step failed, what was waited for did not come; of `diff`: something changes',
  usage:
    'the call can’t be understood: unknown flag, missing argument, no such file, no YAML, no such pool, no pool at all; of `diff` also: a pool can’t be rendered',
  unavailable: 'something that is needed is not there: a cluster, a package, a permission',
  software: 'a mistake in Shale itself, with a stack to report',
  interrupted: 'ended by Ctrl-C',
};

/** An error whose message is all a person needs: printed as one line, without a stack. */
export class CommandError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode: number = exitCodes.failed, options?: ErrorOptions) {
    super(message, options);
    this.name = 'CommandError';
    this.exitCode = exitCode;
  }
}
