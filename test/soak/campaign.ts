import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { errorMessage } from '../../api/error-message.ts';
import type { Node } from '../../api/kubernetes.ts';
import type { MachineConfig } from '../../api/machine-config.ts';
import { readExamples } from '../../workshop/sandbox/tour/step.ts';
import { Admin, SLOTS } from './faults/admin.ts';
import { adminFaults } from './faults/admin-faults.ts';
import { type Cast, drawFault, type Fault, type FaultKind, type Stage } from './faults/fault.ts';
import { holderFaults } from './faults/holder-faults.ts';
import { nodeFaults } from './faults/node-faults.ts';
import { processFaults } from './faults/process-faults.ts';
import { scriptedFaults } from './faults/scripted-faults.ts';
import { serverFaults } from './faults/server-faults.ts';
import type { EditEvent, FaultEvent } from './history/history.ts';
import { leftToDo } from './invariants/convergence.ts';
import { findLeaks } from './world/leaks.ts';
import { compareBytes, expectedFiles, readBoot, readDisk } from './world/node-bytes.ts';
import { Random } from './world/random.ts';
import { findSecrets, readRawLines } from './world/remains.ts';
import { SCRIPTED_POOL } from './world/scripted-nodes.ts';
import type { World } from './world/world.ts';

/** Pools of the sandbox's machines. */
const POOLS = ['worker', 'infra'];
const KINDS = [...processFaults, ...serverFaults, ...nodeFaults, ...adminFaults, ...holderFaults];

/** @param cast of a campaign. @returns the kinds of faults that are drawn in it. */
export function kindsFor({ scripted }: Pick<Cast, 'scripted'>): readonly FaultKind[] {
  return scripted.length === 0 ? KINDS : [...KINDS, ...scriptedFaults];
}
/** ms between two looks at the disks of the nodes. */
const BYTES_MS = 2_000;
const BOOT_MS = 200;
const LOOK_MS = 250;
/** For so long nothing may be left to do: what was written just now may not have been seen. */
const QUIET_MS = 2_000;

export interface CampaignOptions {
  readonly seed: number;
  /** Names of the world's scripted nodes. */
  readonly scripted: readonly string[];
  /** ms of faults before everything has to come to rest. */
  readonly roundMs: number;
  /** Ends the campaign at the end of the round in which it is over, in ms. */
  readonly totalMs: number;
  /** Mean time between two faults, in ms. */
  readonly everyMs: number;
  readonly longestMs: number;
  readonly longestPauseMs: number;
  /** How long everything may take to come to rest, in ms. */
  readonly calmMs: number;
  readonly signal: AbortSignal;
}

/** Runs faults on a world, and lets it come to rest after each round. What is seen is in the world's recorder. */
export async function runCampaign(world: World, options: CampaignOptions): Promise<void> {
  const random = new Random(options.seed);
  const admin = new Admin(world);
  const stage: Stage = { world, admin };
  const { scripted, longestMs, longestPauseMs } = options;
  // The role of each has a MachineConfig of the campaign.
  const pools = scripted.length === 0 ? POOLS : [...POOLS, SCRIPTED_POOL];
  const cast: Cast = { machines: world.machines, scripted, pools, longestMs, longestPauseMs };
  const looking = new AbortController();
  const signal = AbortSignal.any([options.signal, looking.signal]);
  const looks = [
    look(BOOT_MS, () => lookAtBoots(world), signal),
    look(BYTES_MS, () => lookAtBytes(world), signal),
  ];
  try {
    await prepare(stage, random, pools);
    await comeToRest(stage, options);
    const end = world.recorder.now() + options.totalMs;
    do {
      await runRound(stage, random, cast, options);
      await comeToRest(stage, options);
      await lookAtBytes(world);
    } while (world.recorder.now() < end && !options.signal.aborted);
    world.recorder.record({ what: 'leaked images', images: await findLeaks(world, pools) });
  } finally {
    looking.abort();
    await Promise.all(looks);
  }
}

async function prepare({ world, admin }: Stage, random: Random, pools: readonly string[]): Promise<void> {
  await admin.apply(...(await readExamples('90-disruption-policy.yaml')));
  await admin.createPullSecret(`soak-${random.between(1e8, 1e9)}-secret`);
  for (const role of pools) await admin.edit(role, SLOTS[0], false);
  await admin.setSwitch(true);
  world.recorder.record({ what: 'fault', fault: 'start', phase: 'begins', subject: 'layered', details: '' });
}

/** Faults come at random times, several at once, and are all over in the end. */
async function runRound(stage: Stage, random: Random, cast: Cast, options: CampaignOptions): Promise<void> {
  const { recorder } = stage.world;
  const until = recorder.now() + options.roundMs;
  const over = new AbortController();
  const lasting: Promise<void>[] = [];
  while (recorder.now() < until && !options.signal.aborted) {
    const fault = drawFault(kindsFor(cast), random, cast);
    const pauseMs = -Math.log(1 - random.next()) * options.everyMs;
    lasting.push(commit(stage, fault, AbortSignal.any([over.signal, options.signal])));
    await delay(pauseMs, undefined, { signal: options.signal }).catch(() => undefined);
  }
  over.abort();
  await Promise.all(lasting);
}

/** Brings a fault about, and ends it when its time is over. One that fails is in the history, and ends no campaign. */
export async function commit(stage: Stage, fault: Fault, over: AbortSignal): Promise<void> {
  const { recorder } = stage.world;
  const { kind, subject, details = '', lastsMs } = fault;
  const record = (phase: FaultEvent['phase'], words: string) =>
    recorder.record({ what: 'fault', fault: kind, phase, subject, details: words });
  const tryTo = async (phase: 'begins' | 'ends', work: () => Promise<unknown>) => {
    try {
      const outcome = await work();
      const words = [phase === 'begins' ? details : '', typeof outcome === 'string' ? outcome : ''];
      record(phase, words.filter((word) => word !== '').join('; '));
    } catch (error) {
      record('fails', `${phase}: ${errorMessage(error)}`);
    }
  };
  await tryTo('begins', () => fault.begin(stage));
  const { end } = fault;
  if (end === undefined) return;
  await delay(lastsMs ?? 0, undefined, { signal: over }).catch(() => undefined);
  // Also of one that failed: half of it may have come about.
  await tryTo('ends', () => end.call(fault, stage));
}

/** Waits until nothing is left to do, or the time for that is over: the checker reads what is left then. */
async function comeToRest({ world, admin }: Stage, { calmMs, signal }: CampaignOptions): Promise<void> {
  const { recorder, observer } = world;
  const until = recorder.now() + calmMs;
  const left = () => leftToDo(observer.cluster, admin.mode, lastEdits(world));
  let quietSince = recorder.now();
  while (recorder.now() < until && recorder.now() - quietSince < QUIET_MS && !signal.aborted) {
    await delay(LOOK_MS);
    const missing = left();
    if (missing.length > 0) quietSince = recorder.now();
    recorder.note(
      missing.length === 0
        ? 'nothing is left to do'
        : `waiting: ${missing.length} things, first: ${missing[0]}`,
    );
  }
  recorder.record({ what: 'calm', mode: admin.mode });
}

function lastEdits({ recorder }: World): readonly EditEvent[] {
  const edits = recorder.history.events.filter((event) => event.what === 'edit');
  return [...new Map(edits.map((edit) => [edit.machineConfig, edit])).values()];
}

async function look(everyMs: number, once: () => Promise<void>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await once();
    await delay(everyMs, undefined, { signal }).catch(() => undefined);
  }
}

const boots = new WeakMap<World, Map<string, string>>();

async function lookAtBoots(world: World): Promise<void> {
  const seen = boots.get(world) ?? new Map<string, string>();
  boots.set(world, seen);
  for (const node of world.machines) {
    const boot = await readBoot(world.layout.node(node), world.kind).catch(() => undefined);
    if (boot === undefined || seen.get(node) === boot.bootID) continue;
    seen.set(node, boot.bootID);
    world.recorder.record({ what: 'boot', node, bootID: boot.bootID, image: boot.image });
  }
}

const paths = new WeakMap<World, Set<string>>();

async function lookAtBytes(world: World): Promise<void> {
  const { cluster } = world.observer;
  const seen = paths.get(world) ?? new Set<string>();
  paths.set(world, seen);
  for (const name of world.machines) {
    const read = () => {
      // A machine that boots says nothing, and its disk is being put together.
      const node = isReady(cluster.node(name)) ? cluster.machineConfigNode(name) : undefined;
      const current = node?.status?.configVersion?.current ?? '';
      return { node, config: cluster.get<MachineConfig>('MachineConfig', current) };
    };
    const { config } = read();
    if (config !== undefined) rememberOwnPaths(seen, config);
    const disk = await readDisk(world.layout.node(name), world.kind, seen).catch(() => undefined);
    if (disk !== undefined) world.recorder.record({ what: 'disk', node: name, ...disk });
    const compared = await compareBytes(world.layout.node(name), world.kind, read, seen);
    if (compared !== undefined) world.recorder.record({ what: 'bytes', node: name, ...compared });
  }
}

function isReady(node: Node | undefined): boolean {
  return node?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true;
}

/** What the stock image has, too, comes back where a config no longer has it. */
function rememberOwnPaths(seen: Set<string>, config: MachineConfig): void {
  for (const name of expectedFiles(config).keys()) if (name.includes('soak')) seen.add(name);
}

/** Reads what a campaign leaves behind, once its processes have ended. @param dir gets the history, for people. */
export async function readRemains(world: World): Promise<void> {
  const { layout, recorder } = world;
  for (const { pod, line } of await readRawLines(layout.logs))
    recorder.record({ what: 'raw line', pod, line });
  for (const where of await findSecrets([layout.logs, layout.registry], recorder.history.secrets))
    recorder.record({ what: 'secret found', where });
}

/** Keeps texts beside each other in a directory. */
export async function keepTexts(
  dir: string,
  texts: Readonly<Record<string, readonly string[]>>,
): Promise<void> {
  for (const [name, lines] of Object.entries(texts))
    await writeFile(path.join(dir, name), `${lines.join('\n')}\n`);
}
