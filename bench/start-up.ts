/**
 * `node bench/start-up.ts`: what it costs to start Shale's processes, to the end of their `--help`: from the bundle that the
 * image runs, and from the sources, beside Node itself with an empty program. Whoever reads it from a machine with other
 * work looks at the CPU time.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { bundlePrograms } from '../container/bundle.ts';
import { median } from './timing.ts';

const ROOT = path.join(import.meta.dirname, '..');
/** Not where `make image` has them; what is not bundled is found from here as well. */
const BUNDLES = path.join(ROOT, 'node_modules/.cache/shale-start-up');
const SOURCES = path.join(ROOT, 'cli/main.ts');
const COMMANDS = ['status', 'build', 'operator', 'machine-os-builder', 'daemon'];
const RUNS = 9;
/** Not maxRSS, which a process inherits from the one that started it. */
const REPORT = `data:text/javascript,import { readFileSync } from 'node:fs'; process.on('exit', () => {
  const { user, system } = process.cpuUsage();
  const [, peakKib] = readFileSync('/proc/self/status', 'utf8').match(/VmHWM:\\s+(\\d+)/);
  process.stderr.write(JSON.stringify({ cpuMs: (user + system) / 1000, peakMb: peakKib / 1024 }));
})`;

interface Cost {
  readonly cpuMs: number;
  readonly peakMb: number;
  readonly wallMs: number;
}

async function start(args: readonly string[], cache: string): Promise<Cost> {
  const begun = performance.now();
  const options = ['--disable-warning=ExperimentalWarning', '--import', REPORT];
  const { stderr } = await execa(process.execPath, [...options, ...args], {
    env: { NODE_COMPILE_CACHE: cache },
  });
  return { ...JSON.parse(stderr), wallMs: performance.now() - begun };
}

function row(name: string, program: string, costs: readonly Cost[]) {
  const of = (figure: keyof Cost) => median(costs.map((cost) => cost[figure])).toFixed(0);
  return { name, program, 'CPU ms': of('cpuMs'), 'wall ms': of('wallMs'), 'peak MB': of('peakMb') };
}

await bundlePrograms({ main: 'cli/main.ts' }, BUNDLES);
const cache = await mkdtemp(path.join(tmpdir(), 'shale-start-up-'));
try {
  const rows = [];
  for (const command of [undefined, ...COMMANDS]) {
    const programs: readonly (readonly [string, readonly string[]])[] =
      command === undefined
        ? [['empty', ['--eval', '']]]
        : [
            ['sources', [SOURCES, command, '--help']],
            ['bundle', [path.join(BUNDLES, 'main.mjs'), command, '--help']],
          ];
    const costs = programs.map(() => [] as Cost[]);
    // In turn, so that a machine that slows down slows both; the first run only fills the compile cache.
    for (let run = 0; run <= RUNS; run++) {
      for (const [index, [, args]] of programs.entries()) {
        const cost = await start(args, cache);
        if (run > 0) costs[index]?.push(cost);
      }
    }
    for (const [index, [program]] of programs.entries()) {
      rows.push(row(command ?? 'node', program, costs[index] ?? []));
    }
  }
  // biome-ignore lint/suspicious/noConsole: a benchmark prints its table
  console.table(rows);
} finally {
  await rm(cache, { recursive: true });
}
