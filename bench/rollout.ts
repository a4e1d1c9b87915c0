/**
 * `node bench/rollout.ts [NODESxPOOLS…]`: what whole rollouts cost the operator, from 100 to 5,000 nodes in 5 and in 50
 * pools: the operator as it ships in a process of its own, the embedded API server, and nodes that do at once what they
 * are told, but for the second that a live update takes. Each row is a live update of every node, and then one that
 * reboots every node. BENCH_REQUESTS=1 prints which requests they are.
 */
import { parseArgs } from 'node:util';
import type { DisruptionAction } from '../api/disruption-action.ts';
import { type BenchFleet, startFleet } from './rollout/fleet.ts';
import { type OperatorProcess, startOperator } from './rollout/operator-process.ts';
import { growth, type Measured } from './timing.ts';

const SIZES = ['100x5', '1000x5', '5000x5', '100x50', '1000x50', '5000x50'];
const LIMIT_MS = 1_800_000;
/** Nodes that are cordoned one after the other in a settled fleet. */
const SINGLE_EVENTS = 50;
/** Which requests make the sum up; only for a look at a single row. */
const WITH_REQUESTS = process.env['BENCH_REQUESTS'] !== undefined;

const RESTART: readonly DisruptionAction[] = [{ type: 'Restart', service: 'chronyd.service' }];
const REBOOT: readonly DisruptionAction[] = [{ type: 'Reboot' }];

const LEGEND = `CPU growth: how much faster the operator’s CPU time grows than the nodes; 1 is linear.
waves: of a live update, each on the proof of the one before; the most that a pool needed.
decision ms: from a daemon’s report that its node is updated until its grant is withdrawn, median / 99 %.
CPU ms/event: one node that is cordoned or uncordoned by hand while all else rests, to the pool’s written status.`;

async function rollOut(
  fleet: BenchFleet,
  operator: OperatorProcess,
  content: string,
  actions: readonly DisruptionAction[],
) {
  fleet.takeRequests();
  const cpu = await operator.cpuSeconds();
  const start = performance.now();
  const course = await fleet.rollOut(content, actions);
  const seconds = (performance.now() - start) / 1000;
  const requests = fleet.takeRequests();
  return { seconds, requests, course, cpu: (await operator.cpuSeconds()) - cpu };
}

async function costOfEvent(fleet: BenchFleet, operator: OperatorProcess, nodes: number): Promise<number> {
  const cpu = await operator.cpuSeconds();
  const events = await fleet.singleEvents(Math.min(nodes, SINGLE_EVENTS));
  return (1000 * ((await operator.cpuSeconds()) - cpu)) / events;
}

/** @param sorted ascending. */
function quantile(sorted: readonly number[], share: number): string {
  return (sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0).toFixed(0);
}

const USAGE = `Usage: node bench/rollout.ts [NODESxPOOLS…]   (default: ${SIZES.join(' ')})`;

/** @throws Error that says how a size is written. */
function parseSize(text: string): { readonly nodes: number; readonly pools: number } {
  const [, nodes, pools] = /^([1-9]\d*)x([1-9]\d*)$/.exec(text) ?? [];
  if (nodes === undefined || pools === undefined) {
    throw new Error(`${JSON.stringify(text)} is no size; expected nodes and pools, such as 1000x5\n${USAGE}`);
  }
  return { nodes: Number(nodes), pools: Number(pools) };
}

const { values, positionals } = parseArgs({
  options: { help: { type: 'boolean', short: 'h' } },
  allowPositionals: true,
});
if (values.help === true) {
  process.stdout.write(`${USAGE}\n`);
  process.exit();
}

const last = new Map<string, Measured>();
const rows: object[] = [];
for (const { nodes, pools } of (positionals.length > 0 ? positionals : SIZES).map(parseSize)) {
  const fleet = await startFleet(nodes, pools, AbortSignal.timeout(LIMIT_MS));
  const operator = await startOperator(fleet.operatorAccess);
  try {
    await fleet.started();
    for (const [update, content, actions] of [
      ['live', 'a', RESTART],
      ['reboot', 'b', REBOOT],
    ] as const) {
      const { seconds, requests, course, cpu } = await rollOut(fleet, operator, content, actions);
      const sum = [...requests.values()].reduce((a, b) => a + b, 0);
      const before = last.get(`${update} ${pools}`);
      const now = { size: nodes, ms: cpu * 1000 };
      last.set(`${update} ${pools}`, now);
      rows.push({
        nodes,
        pools,
        update,
        'requests/node': (sum / nodes).toFixed(1),
        'CPU s': cpu.toFixed(1),
        'CPU ms/node': ((cpu * 1000) / nodes).toFixed(1),
        'CPU growth': growth(before, now),
        'wall s': seconds.toFixed(1),
        waves: update === 'live' ? course.waves : '',
        'decision ms': `${quantile(course.decisionMs, 0.5)} / ${quantile(course.decisionMs, 0.99)}`,
        'CPU ms/event': (await costOfEvent(fleet, operator, nodes)).toFixed(1),
        'peak MB': (await operator.peakMegabytes()).toFixed(0),
      });
      // biome-ignore lint/suspicious/noConsole: a benchmark prints its table
      if (WITH_REQUESTS) console.table(Object.fromEntries([...requests].toSorted(([, a], [, b]) => b - a)));
    }
  } finally {
    await operator.stop();
    await fleet.stop();
  }
  // biome-ignore lint/suspicious/noConsole: a benchmark prints its table
  console.table(rows.slice(-2));
}
// biome-ignore lint/suspicious/noConsole: a benchmark prints its table
console.log(LEGEND);
// biome-ignore lint/suspicious/noConsole: a benchmark prints its table
console.table(rows);
