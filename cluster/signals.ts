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
