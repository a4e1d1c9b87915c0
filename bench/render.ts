/**
 * `node bench/render.ts`: what rendering a pool costs, from the API's objects to the named rendered config and to what
 * it means on a node, and how it grows. The aim is 100 configs of 5 files and 2 units in 5 ms, and linear growth.
 */
import type { MachineConfig } from '../api/machine-config.ts';
import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import { labels } from '../api/names.ts';
import { parseNodeConfig } from '../machineconfig/parse-node-config.ts';
import { MAX_OBJECT_BYTES, renderPool } from '../machineconfig/render.ts';

const CONFIG_COUNTS = [20, 100, 500, 2000];
const FILES = 5;
const UNITS = 2;
const FILE_BYTES = 1024;
/** Of every hundred configs this many override files of an earlier one, as a custom pool's do. */
const OVERRIDING_PERCENT = 20;

const pool: MachineConfigPool = {
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfigPool',
  metadata: { name: 'worker', uid: '0' },
  spec: {},
};

function machineConfig(index: number): MachineConfig {
  const owner = index % 100 < OVERRIDING_PERCENT ? Math.floor(index / 100) * 100 : index;
  const text = `# ${index}\n`.padEnd(FILE_BYTES, 'server ntp.example.org iburst\n').slice(0, FILE_BYTES);
  const files = Array.from({ length: FILES }, (_, file) => ({
    path: `/etc/example.d/${owner}/${file}.conf`,
    mode: 0o644,
    contents: {
      source:
        file % 2 === 0
          ? `data:,${encodeURIComponent(text)}`
          : `data:text/plain;charset=utf-8;base64,${Buffer.from(text).toString('base64')}`,
    },
  }));
  const units = Array.from({ length: UNITS }, (_, unit) => ({
    name: `example-${owner}-${unit}.service`,
    enabled: true,
    contents: `[Unit]\nDescription=Example ${index}\n[Service]\nExecStart=/usr/bin/true\n[Install]\nWantedBy=multi-user.target\n`,
    dropins: [{ name: `${index}.conf`, contents: '[Service]\nNice=5\n' }],
  }));
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name: `${String(index).padStart(5, '0')}-example`, labels: { [labels.role]: 'worker' } },
    spec: { config: { ignition: { version: '3.4.0' }, storage: { files }, systemd: { units } } },
  };
}

interface Timing {
  readonly medianMs: number;
  readonly bestMs: number;
}

function time(run: () => void): Timing {
  const samples: number[] = [];
  const until = performance.now() + 2000;
  while (samples.length < 5 || (performance.now() < until && samples.length < 200)) {
    const start = performance.now();
    run();
    samples.push(performance.now() - start);
  }
  const sorted = samples.toSorted((a, b) => a - b);
  return { medianMs: sorted[Math.floor(sorted.length / 2)] ?? 0, bestMs: sorted[0] ?? 0 };
}

const rows = [];
let previous: { readonly configs: number; readonly ms: number } | undefined;
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
  const growth = previous && medianMs / previous.ms / (count / previous.configs);
  rows.push({
    configs: count,
    'input KiB': Math.round(bytes / 1024),
    'render ms': medianMs.toFixed(2),
    'best ms': bestMs.toFixed(2),
    'renders/s': Math.round(1000 / medianMs),
    'MiB/s': Math.round(bytes / 1024 / 1024 / (medianMs / 1000)),
    'ms growth / size growth': growth?.toFixed(2) ?? '',
    'parseNodeConfig ms': parse.medianMs.toFixed(2),
  });
  previous = { configs: count, ms: medianMs };
}
// biome-ignore lint/suspicious/noConsole: a benchmark prints its table
console.table(rows);
process.stdout.write(`an API object holds ${MAX_OBJECT_BYTES} bytes\n`);
