import type { WatchdogMark } from '../boot-watchdog/mark.ts';
import { again, type Daemon, type StepOutcome, warning } from '../daemon.ts';
import type { JournalEntry } from '../journal/journal.ts';
import type { Observation } from '../observe.ts';
import { nodeConfigOf } from '../prepare/rendered-config.ts';
import { verifyConfig } from '../standard/verify-config.ts';

/**
 * The host has gone back by itself, for no daemon came up in the target: the update goes on as one whose target was not
 * healthy. What standard mode wrote to the running root before the reboot is there still; where it differs from the former
 * config it is taken back, with one more reboot, since the host has come up with it.
 */
export async function hostWentBack(
  { journal, ports, ...daemon }: Daemon,
  { entry, mark }: { readonly entry: JournalEntry; readonly mark: WatchdogMark },
  { bootID, current }: Observation,
): Promise<StepOutcome> {
  const wroteFiles = current?.mode === 'Standard' && entry.next.mode === 'Standard';
  const isAsBefore =
    !wroteFiles || (await verifyConfig(ports.host.root, nodeConfigOf(current.rendered))).length === 0;
  const { version, plan, next, startedAt, leaseHolder } = entry;
  const { reason, why } = mark;
  await journal.write({
    version,
    step: 'rollingBack',
    plan,
    next,
    bootID: entry.bootID,
    startedAt,
    ...(leaseHolder === undefined ? {} : { leaseHolder }),
    failedBoot: isAsBefore ? mark.bootID : bootID,
    reason,
    why,
    byHost: true,
  });
  warning({ journal, ports, ...daemon }, reason, why);
  return again;
}
