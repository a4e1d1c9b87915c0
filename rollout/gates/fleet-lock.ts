import { isDisruptive } from '../../api/disruption-action.ts';
import type { NodeState } from '../pools/node-state.ts';
import type { PoolObservation } from '../pools/pool-observation.ts';
import type { HoldState, StartHold } from './hold.ts';

/** The reason of a hold while the answer is missing. */
export const SLOT_UNKNOWN = 'RebootSlotUnknown';

/**
 * Nodes whose reboots a lock service coordinates take a slot of it first, new nodes and rollbacks too: the service
 * counts reboots, whatever they are for. The slot is given back once the node serves again (fleet-lock-slots.ts).
 */
export const fleetLock = {
  kind: 'disruption',
  reasons: { AwaitingRebootSlot: 'progress', [SLOT_UNKNOWN]: 'others' },
  backsOut: false,
  hold: (
    { gateInputs: { fleetLock: look } }: Pick<PoolObservation, 'gateInputs'>,
    nodes: readonly NodeState[],
  ): StartHold | undefined => {
    if (look === undefined) return undefined;
    const asked = nodes.filter(reboots).map(({ name }) => ({ name, state: look(name) }));
    const waiting = asked.filter(({ state }) => state.kind !== 'clear');
    if (waiting.length === 0) return undefined;
    const held = new Set(waiting.map(({ name }) => name));
    const [hold] = waiting.flatMap(({ state }) => holdOf(state) ?? []);
    return { hold, held };
  },
} as const;

function reboots({ update: { progress } }: NodeState): boolean {
  if (progress.kind !== 'staged' || !isDisruptive(progress.actions)) return false;
  return progress.actions.some(({ type }) => type === 'Reboot');
}

function holdOf(state: HoldState): StartHold['hold'] {
  const message = (why: string) =>
    `reboots wait for a slot of the lock service (spec.shale.fleetLock): ${why}`;
  switch (state.kind) {
    case 'clear':
    case 'asking':
      return undefined;
    case 'holds':
      return { reason: 'AwaitingRebootSlot', message: message(state.why) };
    case 'unknown':
      return { reason: SLOT_UNKNOWN, message: message(`it is unknown whether one is free: ${state.why}`) };
  }
}
