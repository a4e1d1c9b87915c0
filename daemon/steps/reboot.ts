import { setTimeout as delay } from 'node:timers/promises';
import { ForeignChangeError } from '../content/write/write-content.ts';
import { rebootWords } from '../reboot/reboot-words.ts';
import { rebootSoftly } from '../reboot/request.ts';
import { type Current, writeCurrent } from '../records/current.ts';
import { advance, begin, type JournalEntryAt, leftOnDisk } from '../records/journal.ts';
import { holderOf, waitForLease } from './await-grant.ts';
import { newWork, resumedWork } from './disk-work.ts';
import { ContentNotBrought, guardNextBoot, makeNextBoot } from './prepare-boot.ts';
import type { Observation } from './step.ts';
import { again, recordEvent, type StepContext, type StepOutcome, tryPublish } from './step-context.ts';
import { asDeployed, formatNodeTarget, type Update } from './update.ts';

/** A machine that was asked to reboot and still runs after this is asked again. */
const REBOOT_DEADLINE_MS = 600_000;

/** Makes the target the next boot and asks for it, while the node's lease is the operator's. */
export async function rebootInto(
  context: StepContext,
  update: Update,
  observation: Observation,
): Promise<StepOutcome> {
  const holder = holderOf(observation);
  const obstacle = await waitForLease(context, update, holder, observation);
  if (obstacle !== undefined) return obstacle;
  const { journal } = context;
  const left = leftOnDisk(observation.journal, update);
  const entry = begin('applying', update, { bootID: observation.bootID, leaseHolder: holder, ...left });
  await journal.write(entry);
  await tryPublish(context, observation, {
    kind: 'applying',
    plan: entry.plan,
    doing: 'Preparing the next boot',
  });
  const isResumed = observation.journal !== undefined;
  try {
    const current = await recordDeployed(context, update, observation);
    const workOf = isResumed ? resumedWork : newWork;
    await makeNextBoot(workOf(context, entry, { ...observation, current }), entry);
  } catch (error) {
    // Nothing has begun: an update that is over before its first step must not come again by force, nor hold the next
    // one back.
    const isAsBefore = error instanceof ContentNotBrought && !isResumed;
    if (error instanceof ForeignChangeError || isAsBefore) await journal.clear();
    throw error;
  }
  await guardNextBoot(context);
  const rebooting = advance(entry, 'rebooting', { brought: true, rebootingSince: new Date().toISOString() });
  await journal.write(rebooting);
  await tryPublish(context, observation, { kind: 'rebooting', plan: entry.plan });
  recordEvent(
    context,
    'Rebooting',
    `${rebootWords(entry.plan).progress} into ${formatNodeTarget(entry.next)}: ${entry.plan.source}`,
  );
  return requestReboot(context, rebooting);
}

/**
 * Records which kernel arguments of its config the node really boots with, before they are put right: what verifies the
 * update then knows that there is a deployment to roll back to, and which arguments it had. Where the machine has
 * rebooted since the update began, what booted may be the update's own deployment, and the record is of what ran
 * before.
 */
async function recordDeployed(
  { ports }: StepContext,
  { next }: Update,
  { current, journal, bootID, kernelArguments: { entry, added, unreadable } }: Observation,
): Promise<Current | undefined> {
  const hasRebooted = journal !== undefined && journal.bootID !== bootID;
  if (next.mode !== 'Standard' || hasRebooted) return current;
  const deployed = asDeployed(current, {
    kernelArguments: entry,
    addedKernelArguments: added,
    unreadableArgumentNotes: unreadable,
  });
  if (deployed !== undefined && deployed !== current) await writeCurrent(ports.host.root, deployed);
  return deployed;
}

/** The process is ended by the reboot; one that does not come is asked for again. */
export async function requestReboot(
  context: StepContext,
  entry: JournalEntryAt<'rebooting' | 'rollingBack'>,
  reason = `shale: update to ${formatNodeTarget(entry.next)}`,
): Promise<StepOutcome> {
  const { ports, telemetry, signal } = context;
  await telemetry.tracer.flush();
  const plan = entry.step === 'rebooting' ? await rebootSoftly(context, entry, reason) : entry.plan;
  // Before the request: nothing is written after one.
  await context.journal.write({ ...entry, plan, rebootRequests: (entry.rebootRequests ?? 0) + 1 });
  await ports.host.reboot(reason, signal).catch(async (error: unknown) => {
    // Refused, as while somebody holds an inhibitor lock (systemd-inhibit(1)): it is no request in vain, and may be
    // made again.
    if (!signal.aborted) await context.journal.write({ ...entry, plan });
    throw error;
  });
  await delay(REBOOT_DEADLINE_MS, undefined, { signal });
  return again;
}
