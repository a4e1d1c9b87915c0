import { SWITCH_CONFIG_MAP } from '../api/names.ts';
import type { Condition } from '../api/object.ts';
import { setCondition } from '../cluster/update-object.ts';
import type { SwitchProblem, SwitchState } from './switch.ts';

/** @returns the problems in one line for an event or a condition. */
export function formatProblems(problems: readonly SwitchProblem[]): string {
  return problems
    .map(({ key, problem }) => `ConfigMap ${SWITCH_CONFIG_MAP}, data.${key}: ${problem}`)
    .join('; ');
}

/** Condition of the MachineConfiguration: whether layering is switched on. Absent where it is off. */
const LAYERING_CONDITION = 'Layering';

/** Condition of the MachineConfiguration: what the switch asks for can't be done. Absent where nothing fails. */
const DEGRADED_CONDITION = 'LayeringDegraded';

/** Longest message of a condition that is written; only the event has the end of a longer list of problems. */
const MESSAGE_LENGTH = 2048;

/**
 * Reports the state of the switch as a condition.
 *
 * @param conditions the current conditions.
 * @param now the time of a condition that changes.
 * @param generation of the MachineConfiguration that its conditions are about.
 * @returns the conditions with this one; without it where layering is off, so that nothing is left after switching off.
 */
export function withLayeringCondition(
  conditions: readonly Condition[],
  state: SwitchState,
  now: Date,
  generation?: number,
): Condition[] {
  const set = (status: Condition['status'], reason: string, message: string) =>
    setCondition(
      conditions,
      {
        type: LAYERING_CONDITION,
        status,
        reason,
        message: message.slice(0, MESSAGE_LENGTH),
        observedGeneration: generation,
      },
      now,
    );
  switch (state.kind) {
    case 'off':
      return conditions.filter(({ type }) => type !== LAYERING_CONDITION);
    case 'on':
      return set('True', 'SwitchedOn', `Images are pushed to ${state.settings.imageRepository}`);
    case 'invalid':
      return set(
        'Unknown',
        'InvalidSwitch',
        `The previous settings remain in effect: ${formatProblems(state.problems)}`,
      );
  }
}

/**
 * Reports what the operator can't do for the layering switch as a condition.
 *
 * @param failing what fails and why, in words; '' where nothing does.
 */
export function withLayeringFailures(
  conditions: readonly Condition[],
  failing: string,
  now: Date,
  generation?: number,
): Condition[] {
  if (failing === '') return conditions.filter(({ type }) => type !== DEGRADED_CONDITION);
  const condition = { type: DEGRADED_CONDITION, status: 'True', reason: 'StepFailing' } as const;
  const message = failing.slice(0, MESSAGE_LENGTH);
  return setCondition(conditions, { ...condition, message, observedGeneration: generation }, now);
}
