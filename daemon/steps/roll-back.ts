import { disarmWatchdog } from '../host/boot-watchdog/arm.ts';
import type { Observation } from '../observe.ts';
import type { JournalEntryAt } from '../records/journal.ts';
import { inWords } from './end-update.ts';
import { makePreviousNextBoot, takeBackFiles } from './go-back.ts';
import { requestReboot, waitForLease, writtenOver } from './reboot.ts';
import { type Daemon, normal, type StepOutcome, tell } from './step-context.ts';
import type { UpdateContext } from './update-context.ts';

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
  const { reason = 'HealthCheckFailed', why } = entry;
  await tell(daemon, seen, { kind: 'rollingBack', plan: wayBack.plan, why, reason });
  // ostree's merge of /etc would take it along.
  await disarmWatchdog(ports.host.root);
  const context: UpdateContext = {
    ports,
    current: entry.next,
    again: true,
    actionLimits,
    afterWriting: async () => undefined,
    beforeAction: async () => undefined,
    signal,
  };
  if (entry.byHost !== true) await makePreviousNextBoot(context, seen.current);
  else if (seen.current?.mode === 'Standard') {
    await takeBackFiles({ ...context, current: writtenOver(seen.current, entry.next) }, seen.current);
  }
  normal(daemon, 'RollingBack', `reboots into what ran before ${inWords(entry)}`);
  return requestReboot(daemon, entry, `shale: back from ${inWords(entry)}, which is not healthy`);
}
