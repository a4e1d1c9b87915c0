import { maxUnavailable } from '../api/max-unavailable.ts';

/** A node of a pool that limits how many of a failure domain are unavailable at once. */
export interface DomainMember {
  /** The label of its domain, '' for none. */
  readonly domain: string;
  /** Whether it has yet to become unavailable. */
  readonly isToCome: boolean;
}

/**
 * @param limit of a domain: a number or a percentage of its nodes; absent: 1.
 * @param nodes all nodes of the pool.
 * @returns how many nodes have to go one after another, because the domains with the most nodes to come take no more at
 *   a time. A rollout takes at least as long as they do, however many nodes of other domains go beside them.
 */
export function domainRounds(limit: number | string | undefined, nodes: readonly DomainMember[]): number {
  const rounds = [...Map.groupBy(nodes, ({ domain }) => domain).values()].map((members) => {
    const most = Math.max(1, maxUnavailable(limit, members.length));
    return Math.ceil(members.filter(({ isToCome }) => isToCome).length / most);
  });
  return Math.max(0, ...rounds);
}
