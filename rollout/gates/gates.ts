import { rebootsByOthers } from '../next-boot/reboots-by-others.ts';
import type { NodeState } from '../pools/node-state.ts';
import type { PoolObservation } from '../pools/pool-observation.ts';
import { alerts } from './alerts.ts';
import { closed } from './closed.ts';
import { cordoned } from './cordoned.ts';
import { deletion } from './deletion.ts';
import { dependencies } from './dependencies.ts';
import { drivenBy } from './driven-by.ts';
import { fleetLock } from './fleet-lock.ts';
import { foreignTaint } from './foreign-taint.ts';
import type { EndedBy, Gate, GateContext } from './gate.ts';
import { halted } from './halted.ts';
import type { Hold } from './hold.ts';
import { leaseHeld } from './lease-held.ts';
import { windowsGate } from './maintenance-windows.ts';
import { nodeMaintenance } from './node-maintenance.ts';
import { paused } from './paused.ts';
import { plannedMaintenance } from './planned-maintenance.ts';
import { poweredOff } from './powered-off.ts';
import { queries } from './queries.ts';
import { quorum } from './quorum.ts';
import type { SeenNode } from './seen-node.ts';
import { unmanaged } from './unmanaged.ts';
import { vulnerabilities } from './vulnerabilities.ts';
import { wavesGate } from './waves.ts';

/**
 * Everything for which a node's update waits, apart from the pace of a rollout (maxUnavailable, canaries, soak:
 * pools/choose-nodes.ts) and an image that is still being built.
 *
 * Where several hold, the first one is reported, so they are in the order in which an admin acts on them: what a person
 * decided about the pool, what follows from failed nodes, who holds the node, and last what ends by itself. The kinds
 * are evaluated in the same order: a node that somebody else holds does not wait for an alert to end, and other pools,
 * monitoring systems, the clock and lock services are queried only for nodes that are about to start. `drivenBy` comes
 * before `rebootsByOthers`, because a node that this one holds may be armed.
 */
const gates: readonly Gate[] = [
  unmanaged,
  paused,
  closed,
  halted,
  drivenBy,
  rebootsByOthers,
  leaseHeld,
  deletion,
  nodeMaintenance,
  plannedMaintenance,
  poweredOff,
  foreignTaint,
  cordoned,
  dependencies,
  alerts,
  queries,
  vulnerabilities,
  wavesGate,
  windowsGate,
  quorum,
  fleetLock,
];

type GateOf<Kind extends Gate['kind']> = Extract<Gate, { readonly kind: Kind }>;

function gatesOf<Kind extends Gate['kind']>(kind: Kind): readonly GateOf<Kind>[] {
  return gates.filter((gate): gate is GateOf<Kind> => gate.kind === kind);
}

const poolGates = gatesOf('pool');
const nodeGates = gatesOf('node');
const holderGates = gatesOf('holder');
export const startGates = gatesOf('start');
export const timeGates = gatesOf('time');
export const disruptionGates = gatesOf('disruption');

/** By each reason of the condition UpdatesHeld: what ends the wait before a rollout starts with further nodes. */
export const START_WAITS: ReadonlyMap<string, EndedBy> = new Map(
  [...startGates, ...disruptionGates].flatMap(({ reasons }) => Object.entries(reasons)),
);

/**
 * @returns why no update may start in a pool, as its admin or the cluster's has set it; undefined where updates may
 * start.
 */
export function poolHold(pool: Pick<PoolObservation, 'pool' | 'settings'>): Hold | undefined {
  return firstOf(poolGates, ({ hold }) => hold(pool));
}

/** @returns for a node: why nothing disruptive may begin on it, no matter who holds it; undefined when it may. */
export function closingHold(context: GateContext): (node: NodeState) => Hold | undefined {
  const whole = poolHold(context);
  return (node) => whole ?? firstOf(nodeGates, ({ hold }) => hold(context, node));
}

/** @param now ms since the epoch. @returns who else holds a node, in the order in which it matters. */
export function holdersOf(seen: SeenNode, now: number): readonly Hold[] {
  return holderGates.flatMap(({ hold }) => hold(seen, now) ?? []);
}

function firstOf<T>(each: readonly T[], hold: (gate: T) => Hold | undefined): Hold | undefined {
  for (const gate of each) {
    const found = hold(gate);
    if (found !== undefined) return found;
  }
  return undefined;
}
