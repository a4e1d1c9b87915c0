import { isDisruptive } from '../../api/disruption-action.ts';
import type { GateContext } from '../gates/gate.ts';
import { disruptionGates, startGates, timeGates } from '../gates/gates.ts';
import type { Hold, StartHold } from '../gates/hold.ts';
import type { Choice } from './choose-nodes.ts';
import { awaitsRecovery } from './failures.ts';
import { mayApply, type NodeState } from './node-state.ts';
import type { NodeTarget } from './node-target.ts';
import type { ObservedNode, PoolObservation } from './pool-observation.ts';
import { recordedTarget } from './pool-record.ts';

/** What a choice becomes by what nodes have to wait for. */
export interface Started extends Pick<Choice, 'begin'> {
  readonly waits: readonly Hold[];
  /** @returns what a node of the choice waits for; undefined where it waits for nothing. */
  readonly heldFor: (node: string) => Hold | undefined;
}

/**
 * Takes those out of a choice that have to wait for other pools, for alerts, for queries or for nodes that bake.
 *
 * Such a wait only ever delays the start of a node's update. What has begun is finished: a node that is cordoned, that
 * has a grant, or that a failed live update left between two states. Nor does anything wait that undoes a change: a
 * rollback, and nodes on their way back to what their whole pool ran before (the usual cause of an undo is the target
 * itself).
 *
 * @returns the nodes to start with, and what the others wait for; no wait where there are no others.
 */
export function delayStarts(begin: Choice['begin'], context: GateContext): Started {
  if (context.target.kind === 'rolled-back' || begin.length === 0)
    return { begin, waits: [], heldFor: () => undefined };
  const states = new Map(context.states.map((state) => [state.name, state]));
  const observed = new Map(context.nodes.map((each) => [each.node.metadata.name, each]));
  const mayWait = begin.flatMap(({ name }) => {
    const [state, node] = [states.get(name), observed.get(name)];
    if (state === undefined || node === undefined || hasBegun(state)) return [];
    return goesBack(node, context) ? [] : [state];
  });
  const holds = mayWait.length === 0 ? [] : startGates.flatMap((gate) => gate.hold(context, mayWait) ?? []);
  const free = begin.filter(({ name }) => !holds.some(({ held }) => held.has(name)));
  return startedOf(free, holds);
}

/** Takes those out of a choice for which it is not the time. @returns what they wait for, where there are any. */
export function startInTime(
  begin: Choice['begin'],
  context: GateContext,
): Pick<Choice, 'begin'> & { readonly awaitsWindow: Hold | undefined } {
  const states = new Map(context.states.map((state) => [state.name, state]));
  let left = begin;
  let awaitsWindow: Hold | undefined;
  for (const gate of timeGates) {
    const free = left.filter(({ name, level }) => {
      const state = states.get(name);
      return state === undefined || gate.isFree(context, state, level);
    });
    const hold = free.length === left.length ? undefined : gate.hold(context);
    if (hold !== undefined) left = free;
    awaitsWindow ??= hold;
  }
  return { begin: left, awaitsWindow };
}

/**
 * Takes those out of a choice that must not be drained or rebooted now. Each gate is asked about the nodes that those
 * before it let through, because what it is asked about may take something of others (fleet-lock.ts).
 */
export function startDisruptions(begin: Choice['begin'], context: GateContext): Started {
  const states = new Map(context.states.map((state) => [state.name, state]));
  let left = begin;
  const holds: StartHold[] = [];
  for (const gate of disruptionGates) {
    const disruptive = left.flatMap(({ name, level }) =>
      level === 'Disrupt' ? (states.get(name) ?? []) : [],
    );
    const hold = disruptive.length === 0 ? undefined : gate.hold(context, disruptive);
    if (hold === undefined) continue;
    holds.push(hold);
    left = left.filter(({ name }) => !hold.held.has(name));
  }
  return startedOf(left, holds);
}

/**
 * One node of the control plane goes at a time, in the order of all nodes. Where a voter is unhealthy, that is not the
 * order of the healthy ones, which wait for it: its own update may be what repairs it.
 *
 * @param mayStart whether nothing closes the pool for a node.
 * @returns whether a node leaves its turn to one that does not wait for a quorum.
 */
export function givesWay(
  { gateInputs: { quorum: holdOn }, states }: GateContext,
  mayStart: (node: NodeState) => boolean,
): (node: NodeState) => boolean {
  if (holdOn === undefined) return () => false;
  const isHeld = ({ name }: NodeState) => holdOn(name, []) !== undefined;
  const waits = states.filter((node) => mayStart(node) && awaitsDisruption(node));
  if (waits.every(isHeld)) return () => false;
  return (node) => awaitsDisruption(node) && isHeld(node);
}

function awaitsDisruption({ update: { assigned, progress }, claims: { holders }, work }: NodeState): boolean {
  const isFree = assigned && holders.length === 0 && work.cordon === undefined && work.grant === undefined;
  return isFree && progress.kind === 'staged' && isDisruptive(progress.actions);
}

/**
 * What a node that is being drained waits for before its grant. It may have come there without a start: one that was
 * left cordoned when its lease was taken goes on once the lease is free.
 *
 * @returns undefined where the node goes on.
 */
export function disruptionLost(
  context: GateContext,
): (node: NodeState) => { readonly why: string; readonly backsOut: boolean } | undefined {
  return (node) => {
    for (const gate of disruptionGates) {
      const found = gate.hold(context, [node]);
      if (found?.held.has(node.name) !== true) continue;
      return { why: found.hold?.message ?? ASKING, backsOut: gate.backsOut };
    }
    return undefined;
  };
}

const ASKING = 'it is being asked whether the node may be disrupted';

function startedOf(begin: Choice['begin'], holds: readonly StartHold[]): Started {
  return {
    begin,
    waits: holds.filter(({ held }) => held.size > 0).flatMap(({ hold }) => hold ?? []),
    heldFor: (name) => holds.find(({ held }) => held.has(name))?.hold,
  };
}

function hasBegun(node: NodeState): boolean {
  return node.work.cordon !== undefined || mayApply(node) || awaitsRecovery(node);
}

/**
 * The pool's target is what all of its nodes ran last, and this node runs what was recorded later: somebody undid a
 * change that had not reached every node.
 */
function goesBack(
  { machineConfigNode }: ObservedNode,
  { pool, target, record = [] }: Pick<PoolObservation, 'pool' | 'target' | 'record'>,
): boolean {
  if (target.kind !== 'standard' && target.kind !== 'layered') return false;
  if (pool.status?.configuration?.name !== target.target.config) return false;
  const { configVersion, configImage, mode } = machineConfigNode?.status ?? {};
  // Leaving layering, or entering it, is no rollback: every node reboots for it.
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
