import { InvalidArgumentError } from 'commander';

/** How long a process has to end by itself after the first signal; Kubernetes kills it after 30 s. */
const GRACE_MS = 20_000;

/**
 * @returns a signal that is aborted by SIGTERM or SIGINT. A second one, or the end of the grace, ends the process at
 *   once.
 */
export function shutdownSignal(): AbortSignal {
  const controller = new AbortController();
  const stop = (name: NodeJS.Signals) => {
    if (controller.signal.aborted) process.exit(130);
    controller.abort(new Error(`stopped by ${name}`));
    setTimeout(() => process.exit(1), GRACE_MS).unref();
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  return controller.signal;
}

/**
 * Does a process's work until SIGTERM or SIGINT. What is interrupted by the signal is not an error.
 *
 * @throws what the work throws for any other reason.
 */
export async function untilShutDown(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const signal = shutdownSignal();
  try {
    await work(signal);
  } catch (error) {
    if (!signal.aborted || !brokeOff(error, signal.reason)) throw error;
  }
}

/** Clients wrap the reason as the cause of their own error, or throw an AbortError. */
function brokeOff(error: unknown, reason: unknown): boolean {
  if (error === reason) return true;
  if (!(error instanceof Error)) return false;
  return error.name === 'AbortError' || brokeOff(error.cause, reason);
}

/** Work that ends with its signal. */
export type ProcessPart = (signal: AbortSignal) => Promise<void>;

/**
 * Runs parts of a process that depend on each other: when one fails, the others end as well.
 *
 * @returns once all have ended.
 * @throws what the first one threw that failed.
 */
export async function endTogether(parts: readonly ProcessPart[], signal: AbortSignal): Promise<void> {
  const failed = new AbortController();
  const either = AbortSignal.any([signal, failed.signal]);
  await Promise.all(parts.map((part) => part(either).catch((error: unknown) => failed.abort(error))));
  failed.signal.throwIfAborted();
}

/**
 * @returns what reads a flag's value as a whole number between two bounds, both included.
 * @throws InvalidArgumentError (the function returned) that says what would be right.
 */
export function wholeNumber(least: number, most = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() !== '' && Number.isSafeInteger(value) && value >= least && value <= most) return value;
    const range = most === Number.MAX_SAFE_INTEGER ? `${least} or more` : `from ${least} to ${most}`;
    throw new InvalidArgumentError(`Expected a whole number, ${range}`);
  };
}
