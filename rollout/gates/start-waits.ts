import { annotations } from '../../api/names.ts';
import { present } from '../../api/present.ts';
import type { Choice } from '../pools/choose-nodes.ts';
import { awaitsRecovery } from '../pools/failures.ts';
import { isNew } from '../pools/new-node.ts';
import type { NodeState } from '../pools/node-state.ts';
import type { NodeTarget } from '../pools/node-target.ts';
import type { ObservedNode, PoolObservation } from '../pools/pool-observation.ts';
import { recordedTarget } from '../pools/pool-record.ts';
import type { HoldState } from './monitoring-lookup.ts';
import type { StartWait, StartWaitReason } from './start-wait.ts';
import { waveState } from './waves.ts';

export interface StartInputs {
  readonly observation: PoolObservation;
  /** Every node that was looked at and has a MachineConfigNode. */
  readonly states: readonly NodeState[];
  /** How many further nodes run the target. */
  readonly settled: number;
  /** ms since the epoch. */
  readonly now: number;
}

/** What a choice becomes by what nodes have to wait for. */
export interface Started extends Pick<Choice, 'begin'> {
  readonly waits: readonly StartWait[];
  /** @returns what a node of the choice waits for; undefined where it waits for nothing. */
  readonly heldFor: (node: string) => string | undefined;
}

/** What a wait says whose question has no answer: `shale doctor` looks for it. */
export const UNKNOWN_HOLDS = {
  alerts: 'it is unknown whether any is firing',
  queries: 'it is unknown whether any has a result',
} as const;

/** Which nodes a wait holds, of those that a choice would start with. */
interface Hold {
  /** Absent: for a moment that nobody has to know of. */
  readonly wait?: StartWait;
  readonly held: ReadonlySet<string>;
}

/**
 * Takes those out of a choice that have to wait for other pools, for alerts, for queries or for nodes that bake.
 *
 * Such a wait only ever delays the start of a node's update. What has begun is finished: a node that is cordoned, that has a
 * grant, or that a failed live update left between two states. Nor does anything wait that undoes a change: a rollback, and
 * nodes on their way back to what their whole pool ran before (the usual cause of an undo is the target itself).
 *
 * @returns the nodes to start with, and what the others wait for; no wait where there are no others.
 */
export function withinWaits(begin: Choice['begin'], inputs: StartInputs): Started {
  const { settings, target } = inputs.observation;
  if (!isRestricted(settings) || target.kind === 'held' || begin.length === 0)
    return { begin, waits: [], heldFor: () => undefined };
  const states = new Map(inputs.states.map((state) => [state.name, state]));
  const observed = new Map(inputs.observation.nodes.map((each) => [each.node.metadata.name, each]));
  const mayWait = begin.flatMap(({ name }) => {
    const [state, node] = [states.get(name), observed.get(name)];
    if (state === undefined || node === undefined || hasBegun(state)) return [];
    return goesBack(node, inputs.observation) ? [] : [state];
  });
  const holds = [pools, alerts, queries, bakes].flatMap((hold) => hold(mayWait, inputs));
  const waits = holds.filter(({ held }) => held.size > 0).flatMap(({ wait }) => wait ?? []);
  return {
    begin: begin.filter(({ name }) => !holds.some(({ held }) => held.has(name))),
    waits,
    heldFor: (name) => holds.find(({ held }) => held.has(name))?.wait?.why,
  };
}

function isRestricted({ dependsOn, waves, ...settings }: PoolObservation['settings']): boolean {
  const asks = settings.alerts.kind !== 'none' || settings.queries.kind !== 'none';
  return dependsOn.length > 0 || waves.length > 0 || asks;
}

/** A new node takes pods with the target, so it waits for the proof like the others. */
function pools(nodes: readonly NodeState[], { observation, now }: StartInputs): Hold[] {
  const wait = observation.awaitedPools?.(now);
  return wait === undefined ? [] : [{ wait, held: new Set(nodes.map(({ name }) => name)) }];
}

function alerts(nodes: readonly NodeState[], { observation }: StartInputs): Hold[] {
  return monitored(nodes, observation.alerts, {
    what: `alerts (annotation ${annotations.holdOnAlerts})`,
    unknown: UNKNOWN_HOLDS.alerts,
    reasons: { holds: 'AlertsFiring', unknown: 'AlertsUnknown' },
  });
}

function queries(nodes: readonly NodeState[], { observation }: StartInputs): Hold[] {
  return monitored(nodes, observation.queries, {
    what: `queries (annotation ${annotations.holdOnQueries})`,
    unknown: UNKNOWN_HOLDS.queries,
    reasons: { holds: 'QueriesHold', unknown: 'QueriesUnknown' },
  });
}

interface MonitoredWords {
  readonly what: string;
  readonly unknown: string;
  readonly reasons: Readonly<Record<'holds' | 'unknown', StartWaitReason>>;
}

/** A new node disturbs no pod, and more capacity may be what ends the alert. */
function monitored(
  nodes: readonly NodeState[],
  look: (() => HoldState) | undefined,
  { what, unknown, reasons }: MonitoredWords,
): Hold[] {
  const waiting = nodes.filter((node) => !isNew(node));
  const state = waiting.length === 0 ? undefined : look?.();
  if (state === undefined || state.kind === 'clear') return [];
  const held = new Set(waiting.map(({ name }) => name));
  const why = (cause: string) => `updates wait for ${what}: ${cause}`;
  switch (state.kind) {
    case 'asking':
      return [{ held }];
    case 'holds':
      return [{ wait: { reason: reasons.holds, why: why(state.why) }, held }];
    case 'unknown':
      return [{ wait: { reason: reasons.unknown, why: why(`${unknown}: ${state.why}`) }, held }];
  }
}

/** A new node belongs to no wave: no pod runs on it, and the cluster may need it. */
function bakes(nodes: readonly NodeState[], { observation, states, settled, now }: StartInputs): Hold[] {
  const wave = waveState(observation.settings.waves, states, settled, now);
  if (wave === undefined) return [];
  const held = new Set(
    nodes
      .filter((node) => !isNew(node))
      .slice(wave.room)
      .map(({ name }) => name),
  );
  const reason = wave.bakes === undefined ? 'WaveIncomplete' : 'Baking';
  return [{ wait: { reason, why: wave.why, ...present({ until: wave.bakes?.until }) }, held }];
}

function hasBegun(node: NodeState): boolean {
  const { cordon, grant } = node.work;
  const isPermitted = node.nextBoot?.permitted === true;
  return cordon !== undefined || grant !== undefined || isPermitted || awaitsRecovery(node);
}

/**
 * The pool's target is what all of its nodes ran last, and this node runs what was recorded later: somebody undid a change
 * that had not reached every node.
 */
function goesBack(
  { machineConfigNode }: ObservedNode,
  { pool, target, record = [] }: Pick<PoolObservation, 'pool' | 'target' | 'record'>,
): boolean {
  if (target.kind !== 'standard' && target.kind !== 'layered') return false;
  if (pool.status?.configuration?.name !== target.target.config) return false;
  const { configVersion, configImage, mode } = machineConfigNode?.status ?? {};
  // Leaving layering, or entering it, is no way back: every node reboots for it.
  if ((mode === 'Layered') !== (target.kind === 'layered')) return false;
  const runs = { config: configVersion?.current, image: configImage?.currentImage };
  const recorded = record.map(recordedTarget);
  const isTarget = ({ config, image }: NodeTarget) =>
    config === target.target.config &&
    (target.kind === 'layered' ? image !== undefined && target.sameContent.has(image) : image === undefined);
  const running = recorded.findLastIndex(
    ({ config, image }) => config === runs.config && image === runs.image,
  );
  const back = recorded.findIndex(isTarget);
  return back !== -1 && back < running;
}
