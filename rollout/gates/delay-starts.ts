import type { Choice } from '../pools/choose-nodes.ts';
import { awaitsRecovery } from '../pools/failures.ts';
import type { NodeState } from '../pools/node-state.ts';
import type { NodeTarget } from '../pools/node-target.ts';
import type { ObservedNode, PoolObservation } from '../pools/pool-observation.ts';
import { recordedTarget } from '../pools/pool-record.ts';
import type { GateContext } from './gate.ts';
import { startGates, timeGates } from './gates.ts';
import type { Hold } from './hold.ts';

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
  if (context.target.kind === 'held' || begin.length === 0)
    return { begin, waits: [], heldFor: () => undefined };
  const states = new Map(context.states.map((state) => [state.name, state]));
  const observed = new Map(context.nodes.map((each) => [each.node.metadata.name, each]));
  const mayWait = begin.flatMap(({ name }) => {
    const [state, node] = [states.get(name), observed.get(name)];
    if (state === undefined || node === undefined || hasBegun(state)) return [];
    return goesBack(node, context) ? [] : [state];
  });
  const holds = mayWait.length === 0 ? [] : startGates.flatMap((gate) => gate.hold(context, mayWait) ?? []);
  return {
    begin: begin.filter(({ name }) => !holds.some(({ held }) => held.has(name))),
    waits: holds.filter(({ held }) => held.size > 0).flatMap(({ hold }) => hold ?? []),
    heldFor: (name) => holds.find(({ held }) => held.has(name))?.hold,
  };
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

function hasBegun(node: NodeState): boolean {
  const { cordon, grant } = node.work;
  const isPermitted = node.nextBoot?.permitted === true;
  return cordon !== undefined || grant !== undefined || isPermitted || awaitsRecovery(node);
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
