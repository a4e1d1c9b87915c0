import { makePreviousNextBoot } from '../apply/go-back.ts';
import { requestReboot, waitForLease } from '../carry-out.ts';
import { type Daemon, normal, type StepOutcome, tell } from '../daemon.ts';
import { inWords } from '../end-update.ts';
import type { JournalEntryAt } from '../journal/journal.ts';
import type { Observation } from '../observe.ts';

/**
 * Makes what ran before an unhealthy target the next boot and asks for the reboot, under the lease that the update began
 * under. Harmless to repeat.
 */
export async function rollBack(
  daemon: Daemon,
  entry: JournalEntryAt<'rollingBack'>,
  seen: Observation,
): Promise<StepOutcome> {
  const { actionLimits, ports, signal } = daemon;
  const wayBack = {
    plan: { ...entry.plan, actions: [{ type: 'Reboot' as const }], source: `goes back: ${entry.why}` },
  };
  const obstacle = await waitForLease(daemon, wayBack, entry.leaseHolder ?? '', seen);
  if (obstacle !== undefined) return obstacle;
  await tell(daemon, seen, { kind: 'rollingBack', plan: wayBack.plan, why: entry.why });
  await makePreviousNextBoot(
    {
      ports,
      current: entry.next,
      again: true,
      actionLimits,
      afterWriting: async () => undefined,
      beforeAction: async () => undefined,
      signal,
    },
    seen.current,
  );
  normal(daemon, 'RollingBack', `reboots into what ran before ${inWords(entry)}`);
  return requestReboot(daemon, entry, `shale: back from ${inWords(entry)}, which is not healthy`);
}
