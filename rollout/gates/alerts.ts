import { fieldOf } from '../../api/pool-settings/read-settings.ts';
import { monitored } from '../monitoring/monitored.ts';
import type { NodeState } from '../pools/node-state.ts';
import type { PoolObservation } from '../pools/pool-observation.ts';
import type { StartHold } from './hold.ts';

/** Reason of the hold while the answer is missing. */
export const ALERTS_UNKNOWN = 'AlertsUnknown';

/** The pool waits while alerts that it names are firing. */
export const alerts = {
  kind: 'start',
  reasons: { AlertsFiring: 'others', [ALERTS_UNKNOWN]: 'others' },
  hold: (
    { gateInputs: { alerts: look } }: Pick<PoolObservation, 'gateInputs'>,
    nodes: readonly NodeState[],
  ): StartHold | undefined =>
    monitored(nodes, look, {
      what: `alerts (${fieldOf('holdOnAlerts')})`,
      unknown: 'it is unknown whether any is firing',
      reasons: { holds: 'AlertsFiring', unknown: ALERTS_UNKNOWN },
    }),
} as const;
