import type { DisruptionAction } from '../api/disruption-action.ts';
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
