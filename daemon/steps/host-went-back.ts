import type { WatchdogMark } from '../host/boot-watchdog/mark.ts';
import type { Observation } from '../observe.ts';
import type { Current } from '../records/current.ts';
import type { JournalEntry } from '../records/journal.ts';
import { nodeConfigOf } from '../records/rendered-config.ts';
import { verifyConfig } from '../standard/verify-config.ts';
import { again, type Daemon, type StepOutcome, warning } from './step-context.ts';

/**
 * The host has gone back by itself, for no daemon came up in the target: the update goes on as one whose target was not
 * healthy. What standard mode wrote to the running root before the reboot is there still; it is taken back, with one more
 * reboot, since the host has come up with it.
 */
export async function hostWentBack(
  daemon: Daemon,
  { entry, mark }: { readonly entry: JournalEntry; readonly mark: WatchdogMark },
  { bootID, current }: Observation,
): Promise<StepOutcome> {
  const { journal, ports } = daemon;
  const hasLeftFiles = (await filesLeft(ports.host.root, current, entry.next)).length > 0;
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
    failedBoot: hasLeftFiles ? bootID : mark.bootID,
    reason,
    why,
    byHost: true,
  });
  warning(daemon, reason, why);
  return again;
}

/** What differs from the former config and not from the target's: anything else is somebody's own change, and told as drift. */
async function filesLeft(
  root: string,
  current: Current | undefined,
  next: Current,
): Promise<readonly string[]> {
  if (current?.mode !== 'Standard' || next.mode !== 'Standard') return [];
  const differing = async ({ rendered }: typeof current) =>
    (await verifyConfig(root, nodeConfigOf(rendered))).map(({ path }) => path);
  const fromNext = new Set(await differing(next));
  return (await differing(current)).filter((path) => !fromNext.has(path));
}
