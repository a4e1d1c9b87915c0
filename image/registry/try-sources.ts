import { formatReference, type Reference } from '../reference.ts';
import type { OpenSource, PullSource } from './pull-sources.ts';
import { ContentError, RegistryError } from './registry-error.ts';

interface Failure {
  readonly kind: PullSource['kind'];
  readonly at: Reference;
  readonly error: RegistryError | ContentError;
}

/**
 * Asks places one after the other until one answers. A place that can't be reached, doesn't have the image, refuses, or
 * has something else under its digest is passed over.
 *
 * @returns the first answer.
 * @throws the error of the last place that could be asked, which is the image's own registry where it is not blocked; its
 *   message tells what became of the others, and it is temporary when one of them may come back. What is no registry's
 *   error is thrown as it is.
 */
export async function trySources<T>(
  sources: readonly PullSource[],
  ask: (source: OpenSource) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const failures: Failure[] = [];
  for (const source of sources) {
    if (source.kind === 'blocked') {
      failures.push({ kind: source.kind, at: source.reference, error: blocked(source.reference, source.by) });
      continue;
    }
    try {
      return await ask(source);
    } catch (error) {
      if (signal.aborted || !(error instanceof RegistryError || error instanceof ContentError)) throw error;
      failures.push({ kind: source.kind, at: source.reference, error });
    }
  }
  throw allFailed(failures);
}

function blocked(reference: Reference, by: string): RegistryError {
  return new RegistryError(`${formatReference(reference)}: registries.conf blocks ${by}`, {
    code: 'DENIED',
    status: 403,
  });
}

function allFailed(failures: readonly Failure[]): RegistryError | ContentError {
  // What is not at the mirrors of a blocked registry is not there, rather than forbidden.
  const last = failures.findLast(({ kind }) => kind === 'open') ?? failures.at(-1);
  if (last === undefined) return new RegistryError('an image without a place to pull it from', { status: 0 });
  const others = failures.filter((failure) => failure !== last);
  if (others.length === 0) return last.error;
  const reasons = others.map(({ at, error }) => `[${formatReference(at)}: ${error.message}]`);
  const message = `${last.error.message}; nor was it elsewhere: ${reasons.join(', ')}`;
  if (last.error instanceof ContentError) return new ContentError(message, { cause: last.error });
  const { code, status, retryAfterMs } = last.error;
  const temporary = failures.some(({ error }) => error instanceof RegistryError && error.temporary);
  return new RegistryError(message, { code, status, retryAfterMs, temporary }, { cause: last.error });
}
