import { verifyContent } from '../content/drift/verify-content.ts';
import { managedContent, standardContent } from '../content/managed-content.ts';
import { restoreLabels } from '../content/write/restore-content.ts';
import { leftOfOthers } from '../content/write/state-content.ts';
import { writeContent } from '../content/write/write-content.ts';
import { removeWatchdog } from '../host/boot-watchdog/install.ts';
import type { WatchdogMark } from '../host/boot-watchdog/watchdog-files.ts';
import { type Current, imageOf, readCurrent } from '../records/current.ts';
import { advance, type JournalEntry, type JournalEntryAt } from '../records/journal.ts';
import { writeManagedPaths } from '../records/managed-paths.ts';
import { waitForLease } from './await-grant.ts';
import { type DiskWork, writeRunningConfig, writeTarget, writtenOver } from './disk-work.ts';
import { correctCurrent, endWith, settleStateAs, updateRecordOf } from './end-update.ts';
import { makeNextBoot } from './prepare-boot.ts';
import { requestReboot } from './reboot.ts';
import type { Observation } from './step.ts';
import {
  again,
  recordEvent,
  recordWarning,
  type StepContext,
  type StepOutcome,
  tryPublish,
} from './step-context.ts';
import { formatNodeTarget } from './update.ts';

/**
 * Makes what ran before an unhealthy target the next boot and asks for the reboot, under the lease that the update
 * began under. Harmless to repeat.
 */
export async function rollBack(
  context: StepContext,
  entry: JournalEntryAt<'rollingBack'>,
  observation: Observation,
): Promise<StepOutcome> {
  const { ports, signal } = context;
  const rollback = {
    plan: { ...entry.plan, actions: [{ type: 'Reboot' as const }], source: `rollback: ${entry.why}` },
  };
  const obstacle = await waitForLease(context, rollback, entry.leaseHolder ?? '', observation, {
    evenIfRunOut: true,
  });
  if (obstacle !== undefined) return obstacle;
  const { reason = 'HealthCheckFailed', why } = entry;
  await tryPublish(context, observation, { kind: 'rollingBack', plan: rollback.plan, why, reason });
  // ostree's merge of /etc would take it along.
  await removeWatchdog(ports.host.root);
  const work: DiskWork = { ports, current: entry.next, disk: 'Uncertain', signal };
  if (entry.byHost === true) await undoFiles(work, observation.current, entry.next);
  else await makeFormerNextBoot(work, observation.current);
  recordEvent(context, 'RollingBack', `Rebooting into what ran before ${formatNodeTarget(entry.next)}`);
  return requestReboot(
    context,
    entry,
    `shale: rolling back from ${formatNodeTarget(entry.next)}, which is not healthy`,
  );
}

/** Undoes what the update has written to the running system, where the former deployment is booted again. */
async function undoFiles(work: DiskWork, previous: Current | undefined, next: Current): Promise<void> {
  switch (previous?.mode) {
    case undefined:
      return;
    case 'Standard':
      return writeRunningConfig({ ...work, current: writtenOver(previous, next) }, previous);
    case 'Layered': {
      const { host } = work.ports;
      const content = await managedContent(host.root, previous);
      if (content === undefined) return;
      // What the target's config has besides goes by the record once the rollback is over.
      const write = { from: content, to: content, force: true };
      await writeContent(writeTarget(work.ports), write, { signal: work.signal });
    }
  }
}

/**
 * Makes what a node ran before its last update the next boot. What it booted then is on the disk still, so no registry
 * is asked; only of an image that was applied live and never booted bootc and rpm-ostree may have kept nothing.
 *
 * @param context its `current` is what the node is to leave. @param previous what it ran before; undefined on a node
 *   that Shale had not configured then.
 */
async function makeFormerNextBoot(work: DiskWork, previous: Current | undefined): Promise<void> {
  if (previous !== undefined && imageOf(previous) !== undefined) {
    // A rollback is an update like any other.
    return makeNextBoot(work, { next: previous });
  }
  const { ports, signal } = work;
  const { root } = ports.host;
  await ports.backend.rollback(signal);
  if (previous?.mode !== 'Standard') return;
  const { staged } = await ports.backend.status(signal);
  if (staged === undefined) return;
  // The deployment's /etc was merged from one whose image had the config's files in it.
  const from = await managedContent(root, work.current);
  await writeContent(
    { ...writeTarget(ports), root: staged.root, varRoot: root },
    { from, to: standardContent(previous), force: true },
    { signal },
  );
}

/**
 * The host has rolled back by itself, because no daemon started in the target: the update goes on as one whose target
 * was not healthy. What standard mode wrote to the running root before the reboot is there still; it is undone, with
 * one more reboot, since the host has come up with it.
 */
export async function recordHostRollback(
  context: StepContext,
  { entry, mark }: { readonly entry: JournalEntry; readonly mark: WatchdogMark },
  { bootID, current }: Observation,
): Promise<StepOutcome> {
  const { journal, ports, signal } = context;
  const hasLeftFiles = (await filesLeft(ports.host.root, { current, next: entry.next }, signal)).length > 0;
  const { reason, why } = mark;
  const failedBoot = hasLeftFiles ? bootID : mark.bootID;
  await journal.write(advance(entry, 'rollingBack', { failedBoot, reason, why, byHost: true }));
  recordWarning(context, reason, why);
  return again;
}

/**
 * What differs from the former config and not from the target's: anything else is somebody's own change, and reported
 * as drift.
 */
async function filesLeft(
  root: string,
  { current, next }: { readonly current: Current | undefined; readonly next: Current },
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (next.mode === 'Layered') {
    const content = await managedContent(root, current);
    return content === undefined ? [] : leftOfOthers(root, content);
  }
  if (current?.mode !== 'Standard') return [];
  const differing = async (config: typeof current) =>
    (await verifyContent({ root }, standardContent(config), signal)).map(({ path }) => path);
  const fromNext = new Set(await differing(next));
  return (await differing(current)).filter((path) => !fromNext.has(path));
}

/** The node runs what it ran before an unhealthy target: records that, and that the target is not to be tried again. */
export async function finishRollback(
  context: StepContext,
  entry: JournalEntryAt<'rollingBack'>,
  observation: Observation,
): Promise<StepOutcome> {
  const { ports, signal } = context;
  await correctCurrent(ports, observation.current, signal);
  // As after any reboot into an image: its /etc has its own version of all that Shale had written. After a rollback by
  // the host /etc is as it was left.
  if (observation.current?.mode === 'Layered' && entry.byHost !== true)
    await writeManagedPaths(ports.host.root, new Map());
  // The image that failed may have had another policy, by which /var was labelled.
  const content = await managedContent(ports.host.root, await readCurrent(ports.host.root));
  if (content !== undefined) await restoreLabels(writeTarget(ports), content, signal);
  if (observation.current === undefined && content === undefined) await settleStateAs(context, undefined);
  // A rollback without a reason of its own follows failed health checks (verify.ts).
  const { why, reason = 'HealthCheckFailed' } = entry;
  await endWith(context, updateRecordOf(entry, observation, 'RolledBack', { why, reason }));
  recordWarning(context, 'RolledBack', `Rolled back from ${formatNodeTarget(entry.next)}: ${entry.why}`);
  return again;
}
