/**
 * `node bench/rollout.ts [--faults] [--kill] [NODESxPOOLS…]`: what whole rollouts cost the operator, from 100 to 5,000
 * nodes in 5 and in 50 pools: the operator as it ships in a process of its own, an API server, and nodes that do at
 * once what they are told, but for the second that a live update takes. Each size is a live update of every node, and
 * then one that reboots every node. BENCH_REQUESTS=1 prints which requests they are. How far it is goes to standard
 * error.
 *
 * The API server is the embedded one, or kube-apiserver with etcd where KUBEBUILDER_ASSETS names a directory with both;
 * then it also prints what the rollouts cost these, the nodes' own requests among them.
 */
import { parseArgs } from 'node:util';
import { untilShutDown } from '../cluster/process.ts';
import { Echo } from './rollout/echo.ts';
import { type BenchFleet, startFleet, type Update } from './rollout/fleet.ts';
import { type OperatorProcess, startOperator } from './rollout/operator-process.ts';
import { reportProgress } from './rollout/progress.ts';
import { costBetween, serverCost } from './rollout/server-cost.ts';
import { growth, type Measured } from './timing.ts';

const SIZES = ['100x5', '1000x5', '5000x5', '100x50', '1000x50', '5000x50'];
const LIMIT_MS = 1_800_000;
/** Nodes that are cordoned one after the other in a settled fleet. */
const SINGLE_EVENTS = 50;
/** Which requests make the sum up; only for a look at a single row. */
const WITH_REQUESTS = process.env['BENCH_REQUESTS'] !== undefined;

const UPDATES: readonly Update[] = [
  { name: 'live', content: 'a', actions: [{ type: 'Restart', service: 'chronyd.service' }] },
  { name: 'reboot', content: 'b', actions: [{ type: 'Reboot' }] },
];

const LEGEND = `CPU growth: how much faster the operator’s CPU time grows than the nodes; 1 is linear.
waves: of a live update, each on the proof of the one before; the most that a pool needed.
decision ms: from a daemon’s report that its node is updated until its grant is withdrawn, median / 99 %; without those
that wait for a killed operator’s successor.
echo ms: the same of a process beside the operator that answers one written object with another and decides nothing.
CPU ms/event: one node that is cordoned or uncordoned by hand while all else rests, to the pool’s written status.`;

const USAGE = `Usage: node bench/rollout.ts [--faults] [--kill] [NODESxPOOLS…]   (default: ${SIZES.join(' ')})`;

interface Size {
  readonly nodes: number;
  readonly pools: number;
}

interface Bench {
  readonly fleet: BenchFleet;
  readonly operator: OperatorProcess;
  readonly echo: Echo | undefined;
}

async function rollOut({ fleet, operator }: Bench, update: Update) {
  fleet.takeRequests();
  const cpu = await operator.cpuSeconds();
  const before = await serverCost(fleet.controlPlane);
  const start = performance.now();
  const course = await fleet.rollOut(update, values.kill ? () => operator.replace() : undefined);
  const seconds = (performance.now() - start) / 1000;
  const requests = fleet.takeRequests();
  const after = await serverCost(fleet.controlPlane);
  const server = before && after && costBetween(before, after);
  return { seconds, requests, course, server, cpu: (await operator.cpuSeconds()) - cpu };
}

async function costOfEvent({ fleet, operator }: Bench, nodes: number): Promise<number> {
  const cpu = await operator.cpuSeconds();
  const events = await fleet.singleEvents(Math.min(nodes, SINGLE_EVENTS));
  return (1000 * ((await operator.cpuSeconds()) - cpu)) / events;
}

/** @param sorted ascending. */
function quantile(sorted: readonly number[], share: number): string {
  return (sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0).toFixed(0);
}

function printCounts(title: string, counts: ReadonlyMap<string, number>): void {
  process.stdout.write(`${title}\n`);
  printTable(Object.fromEntries([...counts].toSorted(([, a], [, b]) => b - a)));
}

function printTable(rows: object): void {
  // biome-ignore lint/suspicious/noConsole: a benchmark prints its table
  console.table(rows);
}

/** @throws Error that says how a size is written. */
function parseSize(text: string): Size {
  const [, nodes, pools] = /^([1-9]\d*)x([1-9]\d*)$/.exec(text) ?? [];
  if (nodes === undefined || pools === undefined) {
    throw new Error(`${JSON.stringify(text)} is no size; expected nodes and pools, such as 1000x5\n${USAGE}`);
  }
  return { nodes: Number(nodes), pools: Number(pools) };
}

/** One rollout, and what it cost. @returns the row of the table. */
async function measure(bench: Bench, { nodes, pools }: Size, update: Update): Promise<object> {
  const { operator, echo } = bench;
  echo?.take();
  const { seconds, requests, course, server, cpu } = await rollOut(bench, update);
  const echoMs = echo?.take();
  const sum = [...requests.values()].reduce((a, b) => a + b, 0);
  const before = last.get(`${update.name} ${pools}`);
  const now = { size: nodes, ms: cpu * 1000 };
  last.set(`${update.name} ${pools}`, now);
  const row = {
    nodes,
    pools,
    update: update.name,
    'requests/node': (sum / nodes).toFixed(1),
    'CPU s': cpu.toFixed(1),
    'CPU ms/node': ((cpu * 1000) / nodes).toFixed(1),
    'CPU growth': growth(before, now),
    'wall s': seconds.toFixed(1),
    waves: update.name === 'live' ? course.waves : '',
    'decision ms': `${quantile(course.decisionMs, 0.5)} / ${quantile(course.decisionMs, 0.99)}`,
    'echo ms': echoMs === undefined ? '' : `${quantile(echoMs, 0.5)} / ${quantile(echoMs, 0.99)}`,
    'CPU ms/event': (await costOfEvent(bench, nodes)).toFixed(1),
    'peak MB': (await operator.peakMegabytes()).toFixed(0),
  };
  printTable([row]);
  if (WITH_REQUESTS) printCounts(`${update.name}: the operator’s requests`, requests);
  if (server !== undefined) {
    printCounts(`${update.name}: requests to kube-apiserver`, server.requests);
    printCounts(`${update.name}: etcd`, server.etcd);
  }
  return row;
}

/**
 * All updates of one size, on a cluster of its own. @throws what ends it early: the signal, or an operator that died.
 */
async function measureSize(size: Size, signal: AbortSignal): Promise<void> {
  const assets = process.env['KUBEBUILDER_ASSETS'];
  const fleet = await startFleet({ ...size, assets, faults: values.faults }, signal);
  await using parts = new AsyncDisposableStack();
  parts.defer(() => fleet.stop());
  parts.use(reportProgress(`${size.nodes}x${size.pools}`, () => fleet.progress()));
  await fleet.create();
  const operator = await startOperator(await fleet.operatorAccess());
  parts.defer(() => operator.stop());
  // Its writes would be among what the rollout costs etcd.
  const { access, etcdUrl } = fleet.controlPlane;
  const echo = etcdUrl === undefined ? await Echo.start(access) : undefined;
  if (echo !== undefined) parts.defer(() => echo.stop());
  await Promise.race([operator.died, fleet.started()]);
  for (const update of UPDATES)
    rows.push(await Promise.race([operator.died, measure({ fleet, operator, echo }, size, update)]));
}

const { values, positionals } = parseArgs({
  options: {
    help: { type: 'boolean', short: 'h' },
    faults: { type: 'boolean', default: false },
    kill: { type: 'boolean', default: false },
  },
  allowPositionals: true,
});
const last = new Map<string, Measured>();
const rows: object[] = [];
if (values.help === true) {
  process.stdout.write(`${USAGE}\n`);
} else {
  const sizes = (positionals.length > 0 ? positionals : SIZES).map(parseSize);
  await untilShutDown(async (signal) => {
    for (const size of sizes)
      await measureSize(size, AbortSignal.any([signal, AbortSignal.timeout(LIMIT_MS)]));
  });
  if (rows.length > 0) {
    process.stdout.write(`${LEGEND}\n`);
    printTable(rows);
  }
}
