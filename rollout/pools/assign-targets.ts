import type { Node } from '../../api/kubernetes.ts';
import type { MachineConfigNode, MachineConfigNodeSpec } from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import { LONGEST_MESSAGE } from '../../api/object.ts';
import { diskHolder } from '../gates/cordoned.ts';
import { holdersOf } from '../gates/gates.ts';
import type { Hold, NodeHold } from '../gates/hold.ts';
import { isTaken } from '../node-leases.ts';
import { awayOf } from './claims.ts';
import { handoverOf } from './handover.ts';
import { isReady } from './node-availability.ts';
import { type NodeState, readNode } from './node-state.ts';
import {
  type Assignment,
  assignedSpec,
  assignmentPatch,
  hasTarget,
  type NodeTarget,
  nodeTargetOf,
  poolLabelsPatch,
  specWith,
} from './node-target.ts';
import type { ObservedNode, PoolObservation } from './pool-observation.ts';
import { assignedSettings } from './pool-settings.ts';
import { nodeTarget } from './pool-target.ts';
import { progressOf } from './progress.ts';
import { workOn } from './work.ts';

/** A MachineConfigNode to create for a node that has none. */
export interface NewMachineConfigNode {
  readonly node: Node;
  readonly spec: MachineConfigNodeSpec;
}

/**
 * Assigns targets to the nodes of a pool. Nodes that are staging count against the limit; a paused pool assigns no
 * target, unless its nodes are to stage it ahead, and no node gets one that somebody else holds. A node that is
 * not Ready does not count, nor one that somebody else holds: it may take long until either stages anything.
 *
 * @param now ms since the epoch.
 */
export function chooseAssignments(
  observation: PoolObservation,
  stagingLimit: number,
  now: number,
): ReadonlyMap<string, Assignment> {
  const assign = new Map<string, Assignment>();
  let staging = observation.nodes.filter(
    (observed) =>
      isReady(observed.node) &&
      isStaging(observation, observed.machineConfigNode) &&
      diskHolderOn(observation, observed, now) === undefined,
  ).length;
  for (const observed of observation.nodes) {
    const { node, machineConfigNode } = observed;
    if (machineConfigNode === undefined) continue;
    const { spec } = machineConfigNode;
    const desired = nodeTarget(observation.target, machineConfigNode) ?? nodeTargetOf(spec);
    const moves = !hasTarget(spec, desired);
    const takesRoom =
      moves && isReady(node) && whyNot(observation, node, machineConfigNode, desired) === undefined;
    const holder = diskHolderOn(observation, observed, now);
    const mayMove =
      moves &&
      !assignsNothing(observation, node, machineConfigNode) &&
      holder === undefined &&
      (!takesRoom || staging < stagingLimit);
    if (mayMove && takesRoom) staging += 1;
    const target = moves && !mayMove ? nodeTargetOf(spec) : desired;
    const { grant } = workOn(node, spec);
    // What was granted is finished: a holder that waits for the lease would wait for ever.
    const isFinishing = grant !== undefined && !isTaken(observed.lease);
    assign.set(node.metadata.name, {
      ...assignedByPool(observation),
      target,
      // What was granted is ended before it is asked whether it may begin.
      irreconcilable:
        !mayMove && grant !== undefined ? undefined : whyNot(observation, node, machineConfigNode, target),
      heldBy: isFinishing ? undefined : holder?.message.slice(0, LONGEST_MESSAGE),
    });
  }
  return assign;
}

/** @returns what is the same for every node of the pool. */
function assignedByPool({ pool, rules: { policyDigest, imageSigningKeys }, settings }: PoolObservation) {
  return { pool: pool.metadata.name, policyDigest, imageSigningKeys, settings: assignedSettings(settings) };
}

/**
 * A pool that is paused, or an operator that is not to update nodes, assigns no target. With spec.shale.prefetch a
 * paused pool assigns it to nodes that are in no update: what was granted before the pause ends as it was granted.
 */
function assignsNothing(
  { pool, settings }: PoolObservation,
  node: Node,
  { spec }: Pick<MachineConfigNode, 'spec'>,
): boolean {
  if (settings.suspended !== undefined) return true;
  if (pool.spec.paused !== true) return false;
  const { cordon, grant } = workOn(node, spec);
  return !settings.prefetch || cordon !== undefined || grant !== undefined;
}

/** @returns why the node can't apply the target while it runs. */
function whyNot(
  { rules: { whyIrreconcilable } }: PoolObservation,
  { metadata }: Node,
  machineConfigNode: MachineConfigNode | undefined,
  { config }: NodeTarget,
): string | undefined {
  return whyIrreconcilable({
    running: machineConfigNode?.status?.configVersion?.current,
    provisioned: metadata.annotations?.[annotations.provisionedConfig],
    target: config,
  });
}

/** @returns the node's name where its MachineConfigNode has to be created or changed; otherwise nothing. */
export function changesWith(
  { node, machineConfigNode }: ObservedNode,
  assign: ReadonlyMap<string, Assignment>,
) {
  const { name } = node.metadata;
  const assignment = assign.get(name);
  const isSame =
    machineConfigNode !== undefined &&
    assignment !== undefined &&
    assignmentPatch(machineConfigNode.spec, assignment) === undefined &&
    poolLabelsPatch(machineConfigNode.metadata, assignment.pool) === undefined;
  return isSame ? [] : [name];
}

function isStaging({ target }: PoolObservation, node: MachineConfigNode | undefined): boolean {
  if (node === undefined) return false;
  const desired = nodeTarget(target, node);
  if (desired === undefined || !hasTarget(node.spec, desired)) return false;
  // It stages nothing, for as long as that lasts.
  if (node.spec.irreconcilable !== undefined) return false;
  const progress = progressOf(node.spec, node.status);
  if (progress.kind === 'preparing' && progress.stalled === 'refused') return false;
  const { plan, configVersion, configImage } = node.status ?? {};
  const hasIt = configVersion?.current === desired.config && configImage?.currentImage === desired.image;
  return !hasIt && !(plan?.staged === true && plan.config === desired.config && plan.image === desired.image);
}

/** @returns the state of the node with its target already assigned; nothing for a node without a MachineConfigNode. */
export function readWithAssignment(
  observation: PoolObservation,
  observed: ObservedNode,
  assign: ReadonlyMap<string, Assignment>,
  now: number,
): NodeState[] {
  const { node, machineConfigNode } = observed;
  const assignment = assign.get(node.metadata.name);
  if (machineConfigNode === undefined || assignment === undefined) return [];
  const spec = assignedSpec(machineConfigNode.spec, assignment);
  const desired = nodeTarget(observation.target, machineConfigNode);
  const assigned = desired !== undefined && hasTarget(spec, desired);
  const { nextBoot } = machineConfigNode.spec;
  const permitted =
    nextBoot !== undefined &&
    nextBoot.config === assignment.target.config &&
    nextBoot.image === assignment.target.image;
  const holders = holdersOn(observation, observed, now);
  const handover = handoverOf(machineConfigNode);
  const { status } = machineConfigNode;
  return [readNode({ ...observed, holders, spec, status, assigned, permitted, handover })];
}

function holdersOn({ settings }: PoolObservation, observed: ObservedNode, now: number): readonly Hold[] {
  return holdersOf({ ...observed, updateCordoned: settings.updateCordoned }, now);
}

function diskHolderOn(...of: Parameters<typeof holdersOn>): Hold | undefined {
  return diskHolder(holdersOn(...of));
}

/**
 * @returns nodes that get no MachineConfigNode because somebody else holds them. @param now ms since the epoch.
 */
export function keptFromJoining(observation: PoolObservation, now: number): readonly NodeHold[] {
  return observation.nodes.flatMap((observed) => {
    if (observed.machineConfigNode !== undefined || awayOf(observed) !== undefined) return [];
    const hold = diskHolderOn(observation, observed, now);
    return hold === undefined ? [] : [{ name: observed.node.metadata.name, ...hold }];
  });
}

/**
 * A node that goes for good gets one, no matter who holds it: the pool counts nodes by their MachineConfigNodes, and
 * doesn't wait for this one.
 *
 * @param now ms since the epoch.
 * @returns the MachineConfigNodes to create for nodes that have none.
 */
export function missingMachineConfigNodes(
  observation: PoolObservation,
  now: number,
): readonly NewMachineConfigNode[] {
  const { target, nodes } = observation;
  const initial = nodeTarget(target, undefined);
  if (initial === undefined) return [];
  return nodes
    .filter(
      (observed) =>
        observed.machineConfigNode === undefined &&
        (awayOf(observed) !== undefined || diskHolderOn(observation, observed, now) === undefined),
    )
    .map(({ node }) => ({
      node,
      spec: specWith(
        {
          node: { name: node.metadata.name },
          pool: { name: observation.pool.metadata.name },
          configVersion: { desired: initial.config },
        },
        {
          ...assignedByPool(observation),
          target: initial,
          irreconcilable: whyNot(observation, node, undefined, initial),
        },
      ),
    }));
}
