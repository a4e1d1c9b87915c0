/**
 * `node bench/out-of-service.ts` (BENCH_RUNS=5): for how long a service of a node doesn't work while an update takes
 * each action, beside what systemd takes for the same by hand, in turn on the same machine. The service writes down the
 * time every 50 ms; it was away for the longest time between two lines. Machines with systemd and ostree in
 * systemd-nspawn: Debian 12, and its coming release for the soft reboot, which Debian 12 doesn't have. Needs root, and
 * some minutes more when it runs for the first time.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { DisruptionAction } from '../api/disruption-action.ts';
import type { MachineConfigNode } from '../api/machine-config-node.ts';
import { isAt } from '../test/fixtures/node-configs.ts';
import { deadline } from '../test/fixtures/patience.ts';
import { noLab } from '../test/node-lab/lab.ts';
import { type LabNode, type LabSystem, startLabNode } from '../test/node-lab/lab-node.ts';
import { CONFIG, enabledUnit, SERVICE, text, type Updates, updatesOf } from '../test/node-lab/lab-updates.ts';
import { COMING_DEBIAN, noPreparedRoot } from '../test/node-lab/prepared-root.ts';
import { median } from './timing.ts';

if (noLab !== undefined) throw new Error(noLab);

const BEATS = '/var/lab-beats';
const UNIT = `[Service]
ExecStart=/bin/bash -c 'trap : HUP; while :; do echo $$EPOCHREALTIME; sleep 0.05; done >> ${BEATS}'
ExecReload=/bin/kill -HUP $MAINPID
[Install]
WantedBy=multi-user.target
`;
const SERVICES = enabledUnit(SERVICE, UNIT);
const PREPARE_ROOT = '/usr/lib/ostree/prepare-root.conf';
/**
 * ostree soft-reboots into a composefs alone; this machine's own, which installs the first image, may be too old to
 * make one.
 */
const MAYBE_COMPOSEFS = [...SERVICES, text(PREPARE_ROOT, '[composefs]\nenabled = maybe\n')];
const COMPOSEFS = [...SERVICES, text(PREPARE_ROOT, '[composefs]\nenabled = yes\n')];
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
  /** What starts again; its command does not wait for that. */
  readonly boots?: 'machine' | 'userspace';
}

const REBOOT: Way = {
  name: 'Reboot',
  actions: [{ type: 'Reboot' }],
  byHand: 'systemctl --no-block reboot',
  boots: 'machine',
};
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
  REBOOT,
];
/** Into the deployment that ran before, as Shale's goes into another one, too. */
const SOFT_REBOOT: Way = {
  name: 'Soft reboot',
  actions: [{ type: 'Reboot' }],
  byHand: 'ostree admin prepare-soft-reboot 1 && systemctl --no-block soft-reboot',
  boots: 'userspace',
};

/** Seconds. */
interface Times {
  /** Between two heartbeats of the service, at most. */
  readonly away: number;
  /** Until it was done. */
  readonly done: number;
}

/** A machine, and the revision of its config. */
interface Bench {
  readonly lab: LabNode;
  readonly updates: Updates;
  revision: number;
}

const rows: object[] = [];
await measure(WAYS, { stock: SERVICES, images: SERVICES });
if (noPreparedRoot === undefined) {
  await measure([SOFT_REBOOT], { stock: MAYBE_COMPOSEFS, images: COMPOSEFS, system: COMING_DEBIAN });
} else process.stderr.write(`Soft reboot: not measured: ${noPreparedRoot}\n`);
// biome-ignore lint/suspicious/noConsole: a benchmark prints its table
console.table(rows);

interface Machine {
  readonly stock: typeof SERVICES;
  /** What every image has that is made for it. */
  readonly images: typeof SERVICES;
  readonly system?: LabSystem;
}

async function measure(ways: readonly Way[], { stock, images, ...system }: Machine): Promise<void> {
  await using lab = await startLabNode(stock, { daemonArguments: LIMITS, ...system });
  const bench: Bench = { lab, updates: updatesOf(lab, images), revision: 0 };
  // The second has a deployment of the same kind before it.
  for (let first = 0; first < 2; first += 1) await (await staged(bench, REBOOT))();
  for (const way of ways) {
    const times: Record<'shale' | 'byHand', Times[]> = { shale: [], byHand: [] };
    for (let run = 0; run < RUNS; run += 1) {
      times.byHand.push(await timesOf(bench, () => doByHand(bench, way)));
      const grant = await staged(bench, way);
      times.shale.push(await timesOf(bench, grant));
    }
    const of = (who: keyof typeof times, figure: keyof Times) =>
      median(times[who].map((each) => each[figure]));
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
}

async function doByHand({ lab }: Bench, { name, byHand, boots }: Way): Promise<void> {
  const before = await bootOf(lab, boots);
  await lab.sh(byHand);
  if (boots === undefined) return;
  // A machine that is on its way answers nothing.
  const isDone = () =>
    bootOf(lab, boots).then(
      (now) => now !== before,
      () => false,
    );
  await until(lab, `the ${name.toLowerCase()}`, isDone);
}

async function bootOf(lab: LabNode, boots: Way['boots']): Promise<unknown> {
  return boots === 'userspace' ? lab.sh('systemctl show --property=SoftRebootsCount --value') : lab.node;
}

/** Brings an update to where it waits for its grant. @returns what grants it, and waits until it is done. */
async function staged(bench: Bench, { boots, actions }: Way): Promise<() => Promise<void>> {
  const { lab, updates } = bench;
  const from = `rendered-${bench.revision}`;
  bench.revision += 1;
  const config = `rendered-${bench.revision}`;
  const image = await updates.build(config, boots === undefined ? { config: from, actions } : undefined);
  await updates.assign(config, image);
  await lab.until('the plan', isStaged(config));
  return async () => {
    const softReboot = boots === 'userspace' ? 'softReboot' : undefined;
    await updates.want(config, image, boots === undefined ? 'Live' : 'Disrupt', softReboot);
    const { status } = await lab.until('the update', isAt(config));
    if (softReboot !== undefined && status?.lastUpdate?.softReboot !== true)
      throw new Error(`${config} was no soft reboot: ${status?.lastUpdate?.source}`);
  };
}

function isStaged(config: string) {
  return ({ status }: MachineConfigNode) => status?.plan?.config === config && status.plan.staged;
}

async function timesOf(bench: Bench, run: () => Promise<void>): Promise<Times> {
  await bench.lab.sh(`: > ${BEATS}`);
  await beatAfter(bench, 0);
  const start = performance.now();
  await run();
  const done = (performance.now() - start) / 1000;
  const beats = await beatAfter(bench, Date.now() / 1000);
  const gaps = beats.slice(1).map((beat, index) => beat - (beats[index] ?? beat));
  return { away: Math.max(...gaps), done };
}

/** @param time seconds since the epoch. @returns the heartbeats, once there is one after that time. */
async function beatAfter({ lab }: Bench, time: number): Promise<readonly number[]> {
  let beats: readonly number[] = [];
  await until(lab, 'a heartbeat of the service', async () => {
    // Where userspace has just started again, nothing answers yet, or /var is not mounted.
    const lines = await lab.sh(`cat ${BEATS}`).catch(() => '');
    beats = lines.split('\n').filter(Boolean).map(Number);
    return (beats.at(-1) ?? 0) > time;
  });
  return beats;
}

/** @throws Error that says what did not come. */
async function until(lab: LabNode, what: string, isSo: () => Promise<boolean>): Promise<void> {
  const limit = deadline(STEP_MS);
  while (!(await isSo())) {
    if (limit.aborted) throw new Error(`${what} did not come; the daemon's log:\n${await lab.log()}`);
    await delay(LOOK_AGAIN_MS);
  }
}
