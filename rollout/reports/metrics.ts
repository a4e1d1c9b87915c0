import type { Pass } from '../../cluster/controller.ts';
import type { NodeState } from '../pools/node-state.ts';
import { isAtWork } from '../pools/node-step.ts';

/** Where a node is, in words of which there are few: they are values of a metric's label. */
export const NODE_PHASES = ['updated', 'preparing', 'waiting', 'working', 'degraded', 'away'] as const;
export type NodePhase = (typeof NODE_PHASES)[number];

/** Is told what the controllers of this room do. */
export interface RolloutMetrics {
  /** @param phases how many nodes of the pool are where. @param stuckDrains drains that take longer than drains should. */
  pool(name: string, phases: ReadonlyMap<NodePhase, number>, stuckDrains: number): void;
  poolGone(name: string): void;
  /** @param seconds since the node was taken. */
  drained(seconds: number): void;
  pass(controller: string, pass: Pass): void;
}

/** For an operator that nobody watches. */
export const noMetrics: RolloutMetrics = {
  pool: () => undefined,
  poolGone: () => undefined,
  drained: () => undefined,
  pass: () => undefined,
};

/** @returns where a node is; each is in one place only. */
export function phaseOf(node: NodeState): NodePhase {
  if (node.away !== undefined) return 'away';
  if (node.progress.kind === 'degraded') return 'degraded';
  if (isAtWork(node)) return 'working';
  if (!node.assigned) return 'waiting';
  return node.progress.kind === 'staged' ? 'waiting' : node.progress.kind;
}

/** @returns how many nodes are where. @param resting further nodes, which are all updated. */
export function countPhases(nodes: readonly NodeState[], resting = 0): ReadonlyMap<NodePhase, number> {
  const counts = new Map<NodePhase, number>(resting === 0 ? [] : [['updated', resting]]);
  for (const node of nodes) counts.set(phaseOf(node), (counts.get(phaseOf(node)) ?? 0) + 1);
  return counts;
}
