import type { Condition } from '../api/object.ts';
import { setCondition } from '../cluster/conditions.ts';
import { formatProblems, type SwitchState } from './switch.ts';

/** Condition of the MachineConfiguration: whether layering is switched on. Absent where it is off. */
export const LAYERING_CONDITION = 'Layering';

/** Conditions that a custom resource takes; the end of a long list of problems is told by the event alone. */
const MESSAGE_LENGTH = 2048;

/**
 * What the switch says, where an admin looks for what the operator made of it.
 *
 * @param conditions those that there are.
 * @param now when it is so.
 * @returns the conditions with this one; without it where layering is off, so that switching off leaves no trace.
 */
export function withLayeringCondition(
  conditions: readonly Condition[],
  state: SwitchState,
  now: Date,
): Condition[] {
  const set = (status: Condition['status'], reason: string, message: string) =>
    setCondition(
      conditions,
      { type: LAYERING_CONDITION, status, reason, message: message.slice(0, MESSAGE_LENGTH) },
      now,
    );
  switch (state.kind) {
    case 'off':
      return conditions.filter(({ type }) => type !== LAYERING_CONDITION);
    case 'on':
      return set('True', 'SwitchedOn', `Images go to ${state.settings.imageRepository}`);
    case 'invalid':
      return set('Unknown', 'InvalidSwitch', `What was in force stays so: ${formatProblems(state.problems)}`);
  }
}
