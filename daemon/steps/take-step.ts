import { applyLiveFrom, beginLive } from './apply-live.ts';
import { formatAwaitedGrant } from './await-grant.ts';
import { applyCertificate } from './certificate.ts';
import { fail } from './end-update.ts';
import { beIdle } from './idle.ts';
import { prepareTarget } from './prepare.ts';
import { rebootInto, requestReboot } from './reboot.ts';
import { endRolledBack, hostWentBack, rollBack } from './roll-back.ts';
import type { Observation, Step } from './step.ts';
import { again, publish, type StepContext, type StepOutcome, untilTold } from './step-context.ts';
import { recheck, verifyBoot } from './verify.ts';

/**
 * Takes one step.
 *
 * @throws what keeps the step from being taken; the step is decided anew then.
 */
export async function takeStep(daemon: StepContext, step: Step, seen: Observation): Promise<StepOutcome> {
  // What the daemon changes itself is no drift.
  if (step.kind !== 'idle') daemon.driftWatch.disarm();
  switch (step.kind) {
    case 'idle':
      return beIdle(daemon, seen);
    case 'degraded':
      await publish(daemon, seen, { kind: 'degraded', why: step.why, reason: step.reason });
      return untilTold;
    case 'recheck':
      return recheck(daemon, step.why, seen);
    case 'awaitGrant':
      await publish(daemon, seen, {
        kind: 'waiting',
        plan: step.update.plan,
        why: formatAwaitedGrant(step.update.plan),
      });
      return untilTold;
    case 'prepare':
      return prepareTarget(daemon, step, seen);
    case 'apply':
      return beginLive(daemon, step.update, seen);
    case 'applyAgain':
      return applyLiveFrom(daemon, step.entry, seen, true);
    case 'reboot':
      return rebootInto(daemon, step.update, seen);
    case 'rebootAgain':
      return requestReboot(daemon, step.entry);
    case 'verify':
      return verifyBoot(daemon, step.entry, seen);
    case 'rollBack':
      return rollBack(daemon, step.entry, seen);
    case 'hostWentBack':
      return hostWentBack(daemon, step, seen);
    case 'rolledBack':
      return endRolledBack(daemon, step.entry, seen);
    case 'fail':
      return fail(daemon, step, seen);
    case 'applyCertificate':
      await applyCertificate(daemon, step, seen);
      return again;
  }
}
