/** How far a row of the benchmark is. */
export interface Progress {
  readonly doing: string;
  readonly done: number;
  readonly of: number;
}

const EVERY_MS = 10_000;

/**
 * Reports on standard error how far a row is, every ten seconds: a row of 10,000 nodes takes many minutes.
 *
 * @param row such as 1000x5.
 * @returns what ends it.
 */
export function reportProgress(row: string, progress: () => Progress): Disposable {
  const start = performance.now();
  const timer = setInterval(() => {
    const { doing, done, of } = progress();
    const seconds = ((performance.now() - start) / 1000).toFixed(0);
    process.stderr.write(`${row}: ${doing}: ${done} of ${of} nodes (${seconds} s)\n`);
  }, EVERY_MS);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
