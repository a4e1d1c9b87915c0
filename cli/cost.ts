import type { DisruptionAction } from '../api/disruption-action.ts';
import type { Decision } from '../disruption/actions.ts';

/** What a change costs a node, cheapest first. `live`: files change under its feet, and nothing else happens. */
export const COSTS = ['nothing', 'live', 'reload', 'restart', 'drain', 'reboot'] as const;
export type Cost = (typeof COSTS)[number];

/** @returns the dearest of what a decision asks of a node. */
export function costOf({ actions, causes }: Decision): Cost {
  return dearest([causes.length === 0 ? 'nothing' : 'live', ...actions.map(costOfAction)]);
}

/** @returns the dearest; `nothing` of none. */
export function dearest(costs: readonly Cost[]): Cost {
  return COSTS.findLast((cost) => costs.includes(cost)) ?? 'nothing';
}

/** @returns whether a cost is that much or more. */
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
