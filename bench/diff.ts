import { decideActions } from '../disruption/actions.ts';
import { defaultPolicySettings, effectivePolicies } from '../disruption/effective-policies.ts';
import { diffNodeConfigs } from '../machineconfig/diff.ts';
import type { NodeConfig } from '../machineconfig/node-config.ts';
import { parseNodeConfig } from '../machineconfig/parse-node-config.ts';
import { renderPool } from '../machineconfig/render.ts';
import { machineConfig, pool } from './machine-configs.ts';
import { growth, type Measured, time } from './timing.ts';

/**
 * `node bench/diff.ts`: what comparing two renderings costs, and deciding what the difference asks of a node. The aim
 * is 10,000 files in 20 ms, and linear growth.
 */

/** 2,000 MachineConfigs of 5 files are 10,000 files. */
const CONFIG_COUNTS = [20, 100, 500, 2000];
/** One MachineConfig of so many differs between the two renderings. */
const CHANGED = 10;

const policies = effectivePolicies(
  {
    files: [
      {
        path: '/etc/example.d',
        actions: [{ type: 'Restart', restart: { serviceName: 'example.service' } }],
      },
    ],
  },
  defaultPolicySettings,
);

function nodeConfig(count: number, revision: number): NodeConfig {
  const configs = Array.from({ length: count }, (_, index) =>
    machineConfig(index, index % CHANGED === 0 ? revision : 0),
  );
  const rendering = renderPool({ pool, configs, controllerVersion: 'bench', maxObjectBytes: Infinity });
  if (!rendering.ok)
    throw new Error(`the configs of the benchmark do not render: ${JSON.stringify(rendering.problems)}`);
  const parsed = parseNodeConfig(rendering.rendered);
  if (!parsed.ok) throw new Error(`the rendered config can not be read: ${JSON.stringify(parsed.problems)}`);
  return parsed.config;
}

const bytesOf = ({ files }: NodeConfig) =>
  [...files.values()].reduce((sum, { contents }) => sum + contents.length, 0);

const rows = [];
let before: Measured | undefined;
for (const count of CONFIG_COUNTS) {
  const from = nodeConfig(count, 0);
  const to = nodeConfig(count, 1);
  const diff = time(() => void diffNodeConfigs(from, to));
  const actions = time(() => void decideActions({ from, to, policies, layered: true }));
  const bytes = bytesOf(from) + bytesOf(to);
  rows.push({
    configs: count,
    files: from.files.size,
    changes: diffNodeConfigs(from, to).length,
    'diff ms': diff.medianMs.toFixed(3),
    'diffs/s': Math.round(1000 / diff.medianMs),
    'MiB/s': Math.round(bytes / 1024 / 1024 / (diff.medianMs / 1000)),
    'ms growth / size growth': growth(before, { size: count, ms: diff.medianMs }),
    'actions ms': actions.medianMs.toFixed(3),
  });
  before = { size: count, ms: diff.medianMs };
}
// biome-ignore lint/suspicious/noConsole: a benchmark prints its table
console.table(rows);
