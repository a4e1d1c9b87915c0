/**
 * `node bench/render.ts`: what rendering a pool costs, from the API's objects to the named rendered config and to what
 * it means on a node, and how it grows. The aim is 100 configs of 5 files and 2 units in 5 ms, and linear growth.
 */
import { parseNodeConfig } from '../machineconfig/parse-node-config.ts';
import { MAX_OBJECT_BYTES, renderPool } from '../machineconfig/render.ts';
import { machineConfig, pool } from './machine-configs.ts';
import { growth, time } from './timing.ts';

const CONFIG_COUNTS = [20, 100, 500, 2000];
const rows = [];
let previous: { readonly size: number; readonly ms: number } | undefined;
for (const count of CONFIG_COUNTS) {
  const configs = Array.from({ length: count }, (_, index) => machineConfig(index));
  const bytes = Buffer.byteLength(JSON.stringify(configs));
  // More than the API stores in one object is rendered all the same: growth is the question here.
  const render = () => renderPool({ pool, configs, controllerVersion: 'bench', maxObjectBytes: Infinity });
  const rendering = render();
  if (!rendering.ok) {
    throw new Error(`the configs of the benchmark do not render: ${JSON.stringify(rendering.problems)}`);
  }
  const { medianMs, bestMs } = time(render);
  const parse = time(() => void parseNodeConfig(rendering.rendered));
  rows.push({
    configs: count,
    'input KiB': Math.round(bytes / 1024),
    'render ms': medianMs.toFixed(2),
    'best ms': bestMs.toFixed(2),
    'renders/s': Math.round(1000 / medianMs),
    'MiB/s': Math.round(bytes / 1024 / 1024 / (medianMs / 1000)),
    'ms growth / size growth': growth(previous, { size: count, ms: medianMs }),
    'parseNodeConfig ms': parse.medianMs.toFixed(2),
  });
  previous = { size: count, ms: medianMs };
}
// biome-ignore lint/suspicious/noConsole: a benchmark prints its table
console.table(rows);
process.stdout.write(`an API object holds ${MAX_OBJECT_BYTES} bytes\n`);
