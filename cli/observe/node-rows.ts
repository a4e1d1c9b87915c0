import { statesAtWork } from '../../api/node-state.ts';
import { by } from '../../api/order.ts';
import type { NodeView } from '../../view/schemas.ts';
import { formatReason } from './node-text.ts';

/** A row of the table of nodes: one node, or several that wait for the same. */
export interface NodeGroup {
  /** By name; the first stands for all. */
  readonly nodes: readonly [NodeView, ...NodeView[]];
  readonly message: string;
}

/** What the table shows of a cluster's nodes. */
export interface NodeRows {
  /** Failed nodes first, then those at work, then those that wait. */
  readonly groups: readonly NodeGroup[];
  /** Nodes at work that are not in a row. */
  readonly more: number;
  /** Nodes that need no attention and are not in a row. */
  readonly settled: number;
}

/** Nodes at work that have a row; of a pool with thousands of nodes, there are the counts and `-o json`. */
const MOST_AT_WORK = 50;

/**
 * @param now ms since the epoch.
 * @returns the nodes to show: each that failed, however many there are, and those that wait for the same as one.
 */
export function nodeRows(nodes: readonly NodeView[], now: number): NodeRows {
  const sorted = nodes.toSorted(by(({ name }) => name));
  const ranked = Map.groupBy(sorted, rankOf);
  const of = (rank: Rank) => ranked.get(rank) ?? [];
  const alone = (node: NodeView): NodeGroup => ({ nodes: [node], message: formatReason(node, now) });
  return {
    groups: [
      ...of('failed').map(alone),
      ...of('at-work').slice(0, MOST_AT_WORK).map(alone),
      ...collapsed([...of('waiting'), ...of('aside')], now),
    ],
    more: Math.max(0, of('at-work').length - MOST_AT_WORK),
    settled: of('settled').length,
  };
}

/** @returns a row for each node, in the same order. @param now ms since the epoch. */
export function everyNode(nodes: readonly NodeView[], now: number): NodeRows {
  const ranks: readonly Rank[] = ['failed', 'at-work', 'waiting', 'aside', 'settled'];
  const sorted = nodes.toSorted(
    by(
      (node) => ranks.indexOf(rankOf(node)),
      ({ name }) => name,
    ),
  );
  const groups = sorted.map((node): NodeGroup => ({ nodes: [node], message: formatReason(node, now) }));
  return { groups, more: 0, settled: 0 };
}

type Rank = 'failed' | 'at-work' | 'waiting' | 'aside' | 'settled';

function rankOf({ state, obstacle, cordoned, ready }: NodeView): Rank {
  if (state === 'degraded') return 'failed';
  if (statesAtWork.has(state)) return 'at-work';
  if (state !== 'updated') return 'waiting';
  return obstacle !== undefined || cordoned || !ready ? 'aside' : 'settled';
}

/** How much of a target is staged differs from node to node, and is left out where there are several. */
function collapsed(nodes: readonly NodeView[], now: number): NodeGroup[] {
  const withoutStaging = ({ staging: _, ...node }: NodeView) => formatReason(node, now);
  const groups = Map.groupBy(nodes, (node) => JSON.stringify([node.pool, node.state, withoutStaging(node)]));
  return [...groups.values()].flatMap(([first, ...others]): NodeGroup[] => {
    if (first === undefined) return [];
    const message = others.length === 0 ? formatReason(first, now) : withoutStaging(first);
    return [{ nodes: [first, ...others], message }];
  });
}
