/**
 * `node bench/render.ts`: what rendering a pool costs, from the API's objects to the named rendered config and to what
 * it means on a node, and how it grows. The operator renders `again` after a change of one config; the first time is
 * that of a process that has just started. The aim is 2,000 configs of 5 files and 2 units in 50 ms, and linear growth.
 */
import { ParsedConfigs } from '../machineconfig/parse-machine-config.ts';
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
  const input = { pool, controllerVersion: 'bench', maxObjectBytes: Infinity };
  const renderFirst = () => renderPool({ ...input, configs });
  const rendering = renderFirst();
  if (!rendering.ok) {
    throw new Error(`the configs of the benchmark do not render: ${JSON.stringify(rendering.problems)}`);
  }
  const first = time(renderFirst);
  const parsedBefore = new ParsedConfigs();
  const changing = [...configs];
  let revision = 0;
  const renderAgain = () => {
    revision += 1;
    changing[revision % count] = machineConfig(revision % count, revision);
    renderPool({ ...input, configs: changing, parsedBefore });
  };
  renderAgain();
  const { medianMs, bestMs, cpuMs } = time(renderAgain);
  const parse = time(() => void parseNodeConfig(rendering.rendered));
  rows.push({
    configs: count,
    'input KiB': Math.round(bytes / 1024),
    'first ms': first.medianMs.toFixed(2),
    'again ms': medianMs.toFixed(2),
    'best ms': bestMs.toFixed(2),
    'CPU ms': cpuMs.toFixed(2),
    'renders/s': Math.round(1000 / medianMs),
    'MiB/s': Math.round(bytes / 1024 / 1024 / (medianMs / 1000)),
    'CPU growth / size growth': growth(previous, { size: count, ms: cpuMs }),
    'parseNodeConfig ms': parse.medianMs.toFixed(2),
  });
  previous = { size: count, ms: cpuMs };
}
// biome-ignore lint/suspicious/noConsole: a benchmark prints its table
console.table(rows);
process.stdout.write(`an API object holds ${MAX_OBJECT_BYTES} bytes\n`);
