import type { Observation, Step } from './step.ts';
import { publish, type StepContext, type StepOutcome, untilChanged } from './step-context.ts';

/** Somebody else holds the node: reports what waits for that, and writes nothing else. */
export async function leaveAlone(
  context: StepContext,
  { why, armed }: Extract<Step, { kind: 'leaveAlone' }>,
  observation: Observation,
): Promise<StepOutcome> {
  const plan = armed && { ...armed.plan, nextBoot: true };
  await publish(context, observation, plan === undefined ? { kind: 'held', why } : { kind: 'armed', plan });
  return untilChanged;
}
