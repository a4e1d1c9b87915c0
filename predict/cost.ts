import type { DisruptionAction } from '../api/disruption-action.ts';
import { maxUnavailable } from '../api/max-unavailable.ts';
import type { Decision } from '../disruption/actions.ts';

/** The disruption of a node by a change, least first. `live`: files change and nothing else happens. */
export const COSTS = ['nothing', 'live', 'reload', 'restart', 'drain', 'reboot'] as const;
export type Cost = (typeof COSTS)[number];

/** @returns the highest cost of a decision for a node. */
export function costOf({ actions, causes }: Decision): Cost {
  return dearest([causes.length === 0 ? 'nothing' : 'live', ...actions.map(costOfAction)]);
}

/** @returns the highest of several costs; `nothing` for an empty list. */
export function dearest(costs: readonly Cost[]): Cost {
  return COSTS.findLast((cost) => costs.includes(cost)) ?? 'nothing';
}

/** @returns whether a cost is at least the other. */
export function isAtLeast(cost: Cost, least: Cost): boolean {
  return COSTS.indexOf(cost) >= COSTS.indexOf(least);
}

function costOfAction({ type }: DisruptionAction): Cost {
  switch (type) {
    case 'DaemonReload':
    case 'Reload':
      return 'reload';
    case 'Restart':
      return 'restart';
    case 'Drain':
      return 'drain';
    case 'Reboot':
      return 'reboot';
  }
}

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
