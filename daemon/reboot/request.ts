import { setTimeout as delay } from 'node:timers/promises';
import { errorMessage } from '../../api/error-message.ts';
import type { UpdatePlan } from '../../api/machine-config-node.ts';
import type { JournalEntryAt } from '../records/journal.ts';
import { recordWarning, type StepContext } from '../steps/step-context.ts';
import { formatNodeTarget } from '../steps/update.ts';
import { rebootFully } from './choose-reboot.ts';

/**
 * Reboots the userspace into the target, where the plan is to do so. The process is ended by a soft reboot that takes
 * place.
 *
 * @returns the plan of the full reboot that it takes. @throws the signal's reason.
 */
export async function rebootSoftly(
  context: StepContext,
  entry: JournalEntryAt<'rebooting'>,
  reason: string,
): Promise<UpdatePlan> {
  const { plan, next } = entry;
  if (plan.softReboot !== true) return plan;
  const why = await requestSoftReboot(context, entry, reason);
  recordWarning(context, 'SoftRebootFailed', `Rebooting fully into ${formatNodeTarget(next)}: ${why}`);
  return rebootFully(plan, why);
}

/** @returns why it did not take place: the process is ended by one that does. */
async function requestSoftReboot(
  { ports: { backend, host }, settings: { softRebootLimitMs }, signal }: StepContext,
  { bootID, rebootingSince }: JournalEntryAt<'rebooting'>,
  reason: string,
): Promise<string> {
  if ((await host.bootID()) !== bootID) return 'the soft reboot did not boot the target';
  const leftMs = softRebootLeftMs(rebootingSince, Date.now(), softRebootLimitMs);
  const late = `the soft reboot did not happen within ${softRebootLimitMs / 1000} s`;
  if (leftMs === 0) return late;
  try {
    await backend.prepareSoftReboot(signal);
    await host.rebootSoftly(reason, signal);
  } catch (error) {
    signal.throwIfAborted();
    return errorMessage(error);
  }
  await delay(leftMs, undefined, { signal });
  return late;
}

/**
 * How long a soft reboot may still be waited for. The wall clock outlives the daemon's process; one that was set in
 * between makes it a full reboot, at the worst.
 *
 * @param since when it was first asked for, RFC 3339. @param now ms since the epoch.
 * @returns ms; 0 when its time is over.
 */
export function softRebootLeftMs(since: string | undefined, now: number, limitMs: number): number {
  const elapsed = now - Date.parse(since ?? '');
  return elapsed >= 0 ? Math.max(limitMs - elapsed, 0) : 0;
}
