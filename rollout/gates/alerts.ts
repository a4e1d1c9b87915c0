import { fieldOf } from '../../api/pool-settings/read-settings.ts';
import type { NodeState } from '../pools/node-state.ts';
import type { StartHold } from './hold.ts';
import { type HoldState, monitored } from './monitored.ts';

/** What a hold says while the answer is missing: `shale doctor` looks for it. */
export const ALERTS_UNKNOWN = 'it is unknown whether any is firing';

/** The pool waits while alerts that it names are firing. */
export const alerts = {
  kind: 'start',
  reasons: ['AlertsFiring', 'AlertsUnknown'],
  hold: (
    { alerts: look }: { readonly alerts?: () => HoldState },
    nodes: readonly NodeState[],
  ): StartHold | undefined =>
    monitored(nodes, look, {
      what: `alerts (${fieldOf('holdOnAlerts')})`,
      unknown: ALERTS_UNKNOWN,
      reasons: { holds: 'AlertsFiring', unknown: 'AlertsUnknown' },
    }),
} as const;
