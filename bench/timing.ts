interface Timing {
  readonly medianMs: number;
  readonly bestMs: number;
  /** Of this process, at the median: also that of a collection of garbage beside it. */
  readonly cpuMs: number;
}

const LONGEST_MS = 2000;
const FEWEST = 5;
const MOST = 200;

/** Runs something again and again for two seconds, at least five times. @returns how long it takes. */
export function time(run: () => void): Timing {
  const samples: number[] = [];
  const cpu: number[] = [];
  const until = performance.now() + LONGEST_MS;
  while (samples.length < FEWEST || (performance.now() < until && samples.length < MOST)) {
    const start = performance.now();
    const used = process.cpuUsage();
    run();
    samples.push(performance.now() - start);
    const { user, system } = process.cpuUsage(used);
    cpu.push((user + system) / 1000);
  }
  return { medianMs: median(samples), bestMs: Math.min(...samples), cpuMs: median(cpu) };
}

/** @returns the middle one of an odd number of samples; 0 without any. */
export function median(samples: readonly number[]): number {
  const sorted = samples.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

export interface Measured {
  readonly size: number;
  readonly ms: number;
}

/** @returns how much faster the time grows than the size; 1 is linear, '' for the first row. */
export function growth(before: Measured | undefined, now: Measured): string {
  if (before === undefined) return '';
  return (now.ms / before.ms / (now.size / before.size)).toFixed(2);
}
