import type { BuildFailureReason } from '../api/build-failures.ts';

/** Why a build did not succeed, in the terms that its conditions and the decision to try again need. */
export class BuildFailure extends Error {
  /** CamelCase, for the condition's reason. */
  readonly reason: BuildFailureReason;
  /** Whether it may pass by itself: a registry that is down does, a wrong password does not. */
  readonly temporary: boolean;
  readonly retryAfterMs: number | undefined;
  /** The last lines of a container engine's output, where one was at work. */
  readonly logTail: readonly string[] | undefined;

  constructor(
    reason: BuildFailureReason,
    message: string,
    options: ErrorOptions & {
      readonly temporary?: boolean;
      readonly retryAfterMs?: number;
      readonly logTail?: readonly string[];
    } = {},
  ) {
    super(message, options);
    this.name = 'BuildFailure';
    this.reason = reason;
    this.temporary = options.temporary ?? false;
    this.retryAfterMs = options.retryAfterMs;
    this.logTail = options.logTail;
  }

  /** @returns the error itself, or, for one nobody foresaw, a failure that is tried again. */
  static from(error: unknown): BuildFailure {
    if (error instanceof BuildFailure) return error;
    const message = error instanceof Error ? error.message : String(error);
    return new BuildFailure('BuildError', message, { cause: error, temporary: true });
  }
}
