import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { ObservedNode, PoolDecision } from '../pools/decide-pool.ts';
import type { NodeStep } from '../pools/node-step.ts';
import { assignmentPatch } from '../pools/node-target.ts';

/** What a decision asks to be written about one node: its target first, then its step. */
export interface NodeTask {
  readonly seen: ObservedNode & { readonly machineConfigNode: MachineConfigNode };
  /** Merge patch of the MachineConfigNode's spec. */
  readonly patch: Readonly<Record<string, unknown>> | undefined;
  readonly step: NodeStep | undefined;
}

/**
 * Nodes that one look at a pool begins with (gives a target or takes), at least, and as a share of those it sees. A look
 * that wrote to all of a large pool at once would leave those waiting that are through meanwhile, and others for what
 * they proved; with a share of them, what all looks cost grows with the nodes and no faster.
 */
const BEGUN = { atLeast: 16, share: 1 / 16 };

/**
 * Puts what a decision asks for into an order: first what is under way on nodes, so that it ends, then nodes to take,
 * then targets to give.
 *
 * @returns the tasks of one look, and whether some are left to the next.
 */
export function nodeTasks(
  nodes: readonly ObservedNode[],
  { assign, steps }: Pick<PoolDecision, 'assign' | 'steps'>,
): { readonly tasks: readonly NodeTask[]; readonly more: boolean } {
  const underWay: NodeTask[] = [];
  const taken: NodeTask[] = [];
  const assigned: NodeTask[] = [];
  for (const seen of nodes) {
    const { machineConfigNode } = seen;
    const { name } = seen.node.metadata;
    if (machineConfigNode === undefined) continue;
    const assignment = assign.get(name);
    const patch = assignment === undefined ? undefined : assignmentPatch(machineConfigNode.spec, assignment);
    const task = { seen: { ...seen, machineConfigNode }, patch, step: steps.get(name) };
    if (task.step?.kind === 'take') taken.push(task);
    else if (task.step !== undefined) underWay.push(task);
    else if (patch !== undefined) assigned.push(task);
  }
  const toBegin = [...taken, ...assigned];
  const begun = toBegin.slice(0, Math.max(BEGUN.atLeast, nodes.length * BEGUN.share));
  return { tasks: [...underWay, ...begun], more: begun.length < toBegin.length };
}
