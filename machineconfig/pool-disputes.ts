import { byCodeUnits } from '../api/order.ts';

/** A node that is in no pool, because several custom pools select it (poolOfNode). */
export interface PoolDispute {
  readonly node: string;
  /** The names of the custom pools, sorted. */
  readonly pools: readonly string[];
}

/** Nodes named in a sentence; the rest is counted. */
const NAMED_NODES = 10;

/** @returns why the node is in no pool and what to do, to follow the node's name and a colon. */
export function formatDispute({ pools }: PoolDispute): string {
  return `it is in no pool, ${because(pools, false)}`;
}

/** @returns a sentence for each set of pools that select the same nodes, without a full stop. */
export function formatDisputes(disputes: readonly PoolDispute[]): string[] {
  const byPools = Map.groupBy(disputes, ({ pools }) => pools.join());
  return [...byPools.values()].flatMap((same) => {
    const [first] = same;
    if (first === undefined) return [];
    const isMany = same.length > 1;
    const names = same.map(({ node }) => node).toSorted(byCodeUnits);
    const more = names.length - NAMED_NODES;
    const shown = more > 0 ? [...names.slice(0, NAMED_NODES), `${more} more`] : names;
    const subject = `${isMany ? 'Nodes' : 'Node'} ${joined(shown)} ${isMany ? 'are' : 'is'}`;
    return [`${subject} in no pool, ${because(first.pools, isMany)}`];
  });
}

function because(pools: readonly string[], isMany: boolean): string {
  const [them, their] = isMany ? ['them', 'their'] : ['it', 'its'];
  const all = pools.length === 2 ? 'both' : 'all';
  return `because custom pools ${joined(pools)} ${all} select ${them}; change ${their} labels, or the nodeSelector of a pool, so that only one of them does`;
}

/** @returns such as `a, b and c`. */
function joined(words: readonly string[]): string {
  return words.length < 2 ? words.join() : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}
