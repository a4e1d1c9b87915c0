/**
 * `node bench/start-up.ts`: what it costs to start Shale's processes, to the end of their `--help`: from the bundle
 * that the image runs, and from the sources, beside Node itself with an empty program. Whoever reads it from a machine
 * with other work looks at the CPU time.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { bundlePrograms } from '../container/bundle.ts';
import { costOf, medianCost, type ProcessCost } from './process-cost.ts';

const ROOT = path.join(import.meta.dirname, '..');
/** Not where `make image` has them; what is not bundled is found from here as well. */
const BUNDLES = path.join(ROOT, 'node_modules/.cache/shale-start-up');
const SOURCES = path.join(ROOT, 'cli/main.ts');
const COMMANDS = ['status', 'build', 'operator', 'machine-os-builder', 'daemon'];
const RUNS = 9;

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
    const costs = programs.map(() => [] as ProcessCost[]);
    // In turn, so that a machine that slows down slows both; the first run only fills the compile cache.
    for (let run = 0; run <= RUNS; run++) {
      for (const [index, [, args]] of programs.entries()) {
        const cost = await costOf(args, cache);
        if (run > 0) costs[index]?.push(cost);
      }
    }
    for (const [index, [program]] of programs.entries()) {
      rows.push({ name: command ?? 'node', program, ...medianCost(costs[index] ?? []) });
    }
  }
  // biome-ignore lint/suspicious/noConsole: a benchmark prints its table
  console.table(rows);
} finally {
  await rm(cache, { recursive: true });
}
