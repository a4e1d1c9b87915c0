/** An answer of a registry that is not a success, or a connection that broke. */
export class RegistryError extends Error {
  /** distribution-spec "Error Codes", such as MANIFEST_UNKNOWN or UNAUTHORIZED; '' where the registry gave none. */
  readonly code: string;
  /** HTTP status; 0 where there was no answer. */
  readonly status: number;
  /** Whether it may pass by itself. */
  readonly temporary: boolean;
  readonly retryAfterMs: number | undefined;

  constructor(
    message: string,
    about: {
      readonly code?: string;
      readonly status: number;
      readonly retryAfterMs?: number | undefined;
      /** Where the status alone doesn't tell. */
      readonly temporary?: boolean;
    },
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = 'RegistryError';
    this.code = about.code ?? '';
    this.status = about.status;
    this.temporary =
      about.temporary ??
      (about.status === 0 || about.status === 408 || about.status === 429 || about.status >= 500);
    this.retryAfterMs = about.retryAfterMs;
  }
}

/**
 * Joins a failure with one that happened while it was handled: what went wrong first decides what is done about both.
 *
 * @returns the first one with its status and code, and the second in its message and as its cause; the first one as it is
 *   where it is no RegistryError.
 */
export function withLaterFailure(first: unknown, later: unknown): unknown {
  if (!(first instanceof RegistryError)) return first;
  const { code, status, temporary, retryAfterMs } = first;
  const message = `${first.message}; then: ${later instanceof Error ? later.message : String(later)}`;
  return new RegistryError(message, { code, status, temporary, retryAfterMs }, { cause: later });
}

/** What came is not what was asked for: another size, another digest, or no manifest at all. */
export class ContentError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'ContentError';
  }
}
