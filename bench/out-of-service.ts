/**
 * `node bench/out-of-service.ts` (BENCH_RUNS=5): for how long a service of a node doesn't work while an update takes each action, beside
 * what systemd takes for the same by hand, in turn on the same machine. The service writes down the time every 50 ms; it was
 * away for the longest time between two lines. A machine with systemd and ostree in systemd-nspawn; needs root, and a minute
 * more when it runs for the first time.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { DisruptionAction } from '../api/disruption-action.ts';
import type { MachineConfigNode } from '../api/machine-config-node.ts';
import { isAt } from '../test/fixtures/node-configs.ts';
import { deadline } from '../test/fixtures/patience.ts';
import { noLab } from '../test/node-lab/lab.ts';
import { startLabNode } from '../test/node-lab/lab-node.ts';
import { CONFIG, enabledUnit, SERVICE, updatesOf } from '../test/node-lab/lab-updates.ts';
import { median } from './timing.ts';

if (noLab !== undefined) throw new Error(noLab);

const BEATS = '/var/lab-beats';
const UNIT = `[Service]
ExecStart=/bin/bash -c 'trap : HUP; while :; do echo $$EPOCHREALTIME; sleep 0.05; done >> ${BEATS}'
ExecReload=/bin/kill -HUP $MAINPID
[Install]
WantedBy=multi-user.target
`;
const STOCK = enabledUnit(SERVICE, UNIT);
/** How often each is done. */
const RUNS = Number(process.env['BENCH_RUNS'] ?? 5);
const LOOK_AGAIN_MS = 50;
const STEP_MS = 300_000;
/** A busy machine is no failure here. */
const LIMITS = ['--action-limit', '120', '--health-check-limit', '120'];

/** An action of a node, and what somebody would type for it on the node. */
interface Way {
  readonly name: string;
  readonly actions: DisruptionAction[];
  readonly byHand: string;
}

const WAYS: readonly Way[] = [
  { name: 'None', actions: [], byHand: `echo by hand > ${CONFIG}` },
  {
    name: 'Reload',
    actions: [{ type: 'Reload', service: SERVICE }],
    byHand: `systemctl reload ${SERVICE}`,
  },
  {
    name: 'Restart',
    actions: [{ type: 'Restart', service: SERVICE }],
    byHand: `systemctl restart ${SERVICE}`,
  },
  {
    name: 'Reboot',
    actions: [{ type: 'Reboot' }],
    byHand: 'systemctl --no-block reboot',
  },
];

/** Seconds. */
interface Times {
  /** Between two heartbeats of the service, at most. */
  readonly away: number;
  /** Until it was done. */
  readonly done: number;
}

await using lab = await startLabNode(STOCK, { daemonArguments: LIMITS });
const updates = updatesOf(lab, STOCK);
let revision = 1;
await updates.want('rendered-1', await updates.build('rendered-1'), 'Disrupt');
await lab.until('the first image', isAt('rendered-1'));

const rows: object[] = [];
for (const way of WAYS) {
  const times: Record<'shale' | 'byHand', Times[]> = { shale: [], byHand: [] };
  for (let run = 0; run < RUNS; run += 1) {
    times.byHand.push(await timesOf(() => doByHand(way)));
    const grant = await staged(way);
    times.shale.push(await timesOf(grant));
  }
  const of = (who: keyof typeof times, figure: keyof Times) => median(times[who].map((each) => each[figure]));
  process.stderr.write(`${way.name}: ${JSON.stringify(times)}\n`);
  rows.push({
    action: way.name,
    'away s': of('shale', 'away').toFixed(2),
    'by hand s': of('byHand', 'away').toFixed(2),
    'Shale’s own s': (of('shale', 'away') - of('byHand', 'away')).toFixed(2),
    'grant to Updated s': of('shale', 'done').toFixed(2),
    'command s': of('byHand', 'done').toFixed(2),
  });
}
// biome-ignore lint/suspicious/noConsole: a benchmark prints its table
console.table(rows);

async function doByHand({ name, byHand }: Way): Promise<void> {
  const before = lab.node;
  await lab.sh(byHand);
  if (name === 'Reboot') await until('the boot', async () => lab.node !== before);
}

/** Brings an update to where it waits for its grant. @returns what grants it, and waits until it is done. */
async function staged({ name, actions }: Way): Promise<() => Promise<void>> {
  const from = `rendered-${revision}`;
  revision += 1;
  const config = `rendered-${revision}`;
  const image = await updates.build(config, name === 'Reboot' ? undefined : { config: from, actions });
  await updates.assign(config, image);
  await lab.until('the plan', isStaged(config));
  return async () => {
    await updates.want(config, image, name === 'Reboot' ? 'Disrupt' : 'Live');
    await lab.until('the update', isAt(config));
  };
}

function isStaged(config: string) {
  return ({ status }: MachineConfigNode) => status?.plan?.config === config && status.plan.staged;
}

async function timesOf(run: () => Promise<void>): Promise<Times> {
  await lab.sh(`: > ${BEATS}`);
  await beatAfter(0);
  const start = performance.now();
  await run();
  const done = (performance.now() - start) / 1000;
  const beats = await beatAfter(Date.now() / 1000);
  const gaps = beats.slice(1).map((beat, index) => beat - (beats[index] ?? beat));
  return { away: Math.max(...gaps), done };
}

/** @param time seconds since the epoch. @returns the heartbeats, once there is one after that time. */
async function beatAfter(time: number): Promise<readonly number[]> {
  let beats: readonly number[] = [];
  await until('a heartbeat of the service', async () => {
    beats = (await lab.sh(`cat ${BEATS}`)).split('\n').filter(Boolean).map(Number);
    return (beats.at(-1) ?? 0) > time;
  });
  return beats;
}

/** @throws Error that says what did not come. */
async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const limit = deadline(STEP_MS);
  while (!(await isSo())) {
    if (limit.aborted) throw new Error(`${what} did not come; the daemon's log:\n${await lab.log()}`);
    await delay(LOOK_AGAIN_MS);
  }
}
