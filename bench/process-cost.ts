import { execa } from 'execa';
import { median } from './timing.ts';

/** Not maxRSS, which a process inherits from the one that started it. */
const REPORT = `data:text/javascript,import { readFileSync } from 'node:fs'; process.on('exit', () => {
  const { user, system } = process.cpuUsage();
  const [, peakKib] = readFileSync('/proc/self/status', 'utf8').match(/VmHWM:\\s+(\\d+)/);
  process.stderr.write('\\n' + JSON.stringify({ cpuMs: (user + system) / 1000, peakMb: peakKib / 1024 }));
})`;

/** What a process of Node costs, from its start to its end. */
export interface ProcessCost {
  readonly cpuMs: number;
  readonly peakMb: number;
  readonly wallMs: number;
}

/**
 * @param args of Node.
 * @param cache directory of Node's compile cache.
 * @throws Error when the process fails.
 */
export async function costOf(args: readonly string[], cache: string): Promise<ProcessCost> {
  const begun = performance.now();
  const options = ['--disable-warning=ExperimentalWarning', '--import', REPORT];
  const { stderr } = await execa(process.execPath, [...options, ...args], {
    env: { NODE_COMPILE_CACHE: cache },
  });
  const report = stderr.slice(stderr.lastIndexOf('\n') + 1);
  return { ...JSON.parse(report), wallMs: performance.now() - begun };
}

/** @returns the medians, for a row of a table. */
export function medianCost(costs: readonly ProcessCost[]): Readonly<Record<string, string>> {
  const of = (figure: keyof ProcessCost) => median(costs.map((cost) => cost[figure])).toFixed(0);
  return { 'CPU ms': of('cpuMs'), 'wall ms': of('wallMs'), 'peak MB': of('peakMb') };
}
