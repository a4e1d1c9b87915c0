/** A path by which no file of a tree can be reached, or none that may be written. */
export class PathError extends Error {
  override readonly name = 'PathError';
}

/**
 * An operation on a host's file failed. It names the path as the host's admin knows it, and keeps the system's error
 * code.
 */
class HostFileError extends Error {
  override readonly name = 'HostFileError';
  readonly code: string;

  /**
   * @param file the path as the admin knows it. @param cause the system's error, which names the path through a handle.
   */
  constructor(file: string, cause: NodeJS.ErrnoException) {
    const [what = cause.message] = cause.message.split(', ', 1);
    super(`${file}: ${what}${cause.syscall === undefined ? '' : ` (${cause.syscall})`}`);
    this.code = cause.code ?? 'UNKNOWN';
  }
}

/** @returns whether the system gave this error code. */
export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return (
    error instanceof Error && 'code' in error && typeof error.code === 'string' && codes.includes(error.code)
  );
}

/**
 * Runs an operation on one file of a host.
 *
 * @param file the path as the admin knows it.
 * @throws {HostFileError} for an error of the system; any other error as it is.
 */
export async function namingFile<T>(file: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof HostFileError || !isSystemError(error)) throw error;
    throw new HostFileError(file, error);
  }
}

function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error && 'code' in error;
}
