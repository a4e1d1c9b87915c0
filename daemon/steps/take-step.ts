import { applyLiveUpdate, startLiveApply } from './apply-live.ts';
import { formatAwaitedGrant } from './await-grant.ts';
import { applyCertificate } from './certificate.ts';
import { fail } from './end-update.ts';
import { beIdle } from './idle.ts';
import { prepareTarget } from './prepare.ts';
import { rebootInto, requestReboot } from './reboot.ts';
import { endRolledBack, hostWentBack, rollBack } from './roll-back.ts';
import type { Observation, Step } from './step.ts';
import { again, publish, type StepContext, type StepOutcome, untilChanged } from './step-context.ts';
import { recheck, verifyBoot } from './verify.ts';

/**
 * Takes one step.
 *
 * @throws what keeps the step from being taken; the step is decided again then.
 */
export async function takeStep(
  context: StepContext,
  step: Step,
  observation: Observation,
): Promise<StepOutcome> {
  // What the daemon changes itself is no drift.
  if (step.kind !== 'idle') context.driftWatch.disarm();
  switch (step.kind) {
    case 'idle':
      return beIdle(context, observation);
    case 'degraded':
      await publish(context, observation, { kind: 'degraded', why: step.why, reason: step.reason });
      return untilChanged;
    case 'recheck':
      return recheck(context, step.why, observation);
    case 'awaitGrant':
      await publish(context, observation, {
        kind: 'waiting',
        plan: step.update.plan,
        why: formatAwaitedGrant(step.update.plan),
      });
      return untilChanged;
    case 'prepare':
      return prepareTarget(context, step, observation);
    case 'apply':
      return startLiveApply(context, step.update, observation);
    case 'applyAgain':
      return applyLiveUpdate(context, step.entry, observation, true);
    case 'reboot':
      return rebootInto(context, step.update, observation);
    case 'rebootAgain':
      return requestReboot(context, step.entry);
    case 'verify':
      return verifyBoot(context, step.entry, observation);
    case 'rollBack':
      return rollBack(context, step.entry, observation);
    case 'hostWentBack':
      return hostWentBack(context, step, observation);
    case 'rolledBack':
      return endRolledBack(context, step.entry, observation);
    case 'fail':
      return fail(context, step, observation);
    case 'applyCertificate':
      await applyCertificate(context, step, observation);
      return again;
  }
}
