import { formatActions } from '../../api/disruption-action.ts';
import type { FailureReason, UpdateRecord } from '../../api/machine-config-node.ts';
import { imageLabels } from '../../api/names.ts';
import { present } from '../../api/present.ts';
import { sameList } from '../../machineconfig/diff.ts';
import type { ManagedContent } from '../content/entries/desired-tree.ts';
import { managedContent } from '../content/managed-content.ts';
import { settleStateContent } from '../content/write/state-content.ts';
import { retireWatchdog } from '../host/boot-watchdog/install.ts';
import type { NodePorts } from '../host/host.ts';
import type { NodeDeployment } from '../os/backend.ts';
import { rebootBetween, rebootWords } from '../reboot/reboot-words.ts';
import { basesOf, type Current, forgetCurrent, readCurrent, writeCurrent } from '../records/current.ts';
import type { JournalEntry } from '../records/journal.ts';
import { earlierThan, writeLastUpdate } from '../records/last-update.ts';
import { writeManagedPaths } from '../records/managed-paths.ts';
import { writeTarget } from './disk-work.ts';
import type { NodeDrift } from './node-drift.ts';
import { recordUpdate } from './spans.ts';
import type { Observation } from './step.ts';
import { again, recordEvent, recordWarning, type StepContext, type StepOutcome } from './step-context.ts';
import { formatNodeTarget } from './update.ts';

/** The node runs the target: records it and ends the update. */
export async function finish(
  context: StepContext,
  entry: JournalEntry,
  observation: Observation,
): Promise<StepOutcome> {
  const rebooted = entry.bootID !== observation.bootID;
  await recordTarget(context, entry, observation);
  const record = updateRecordOf(entry, observation, 'Succeeded');
  await endWith(context, record);
  if (entry.firstBoot === true) {
    recordEvent(context, 'Configured', `The node came with ${formatNodeTarget(entry.next)}, and is healthy`);
    return again;
  }
  const did = formatActions(entry.plan.actions);
  const { noun } = rebootWords(record);
  const how = entry.withoutGrant === true ? `${noun} without a grant` : noun;
  if (rebooted) recordEvent(context, 'Rebooted', `Running ${formatNodeTarget(entry.next)} after ${how}`);
  else
    recordEvent(
      context,
      'AppliedLive',
      `Running ${formatNodeTarget(entry.next)} without a reboot; actions: ${did}`,
    );
  return again;
}

/** The node runs something else than the target: records what, and that this target has failed. */
export async function fail(
  context: StepContext,
  { entry, why }: { readonly entry: JournalEntry; readonly why: string },
  observation: Observation,
): Promise<StepOutcome> {
  const { ports, signal } = context;
  await correctCurrent(ports, observation.current, signal);
  await endWith(context, updateRecordOf(entry, observation, 'Failed', { why, reason: 'UpdateFailed' }));
  recordWarning(context, 'Degraded', `The update to ${formatNodeTarget(entry.next)} failed: ${why}`);
  return again;
}

/**
 * The node runs the target and is not healthy, with nothing to roll back to, or a newer target to go on to: records
 * that this target has failed.
 */
export async function endUnhealthyTarget(
  context: StepContext,
  entry: JournalEntry,
  observation: Observation,
  why: string,
): Promise<StepOutcome> {
  await recordTarget(context, entry, observation);
  await endWith(context, updateRecordOf(entry, observation, 'Failed', { why, reason: 'HealthCheckFailed' }));
  recordWarning(
    context,
    'HealthCheckFailed',
    `Running ${formatNodeTarget(entry.next)}, which is not healthy: ${why}`,
  );
  return again;
}

/**
 * The node runs the target and is healthy, but its disk is not as the target has it: the update ends without success,
 * and what differs is drift from now on.
 */
export async function endChangedTarget(
  context: StepContext,
  entry: JournalEntry,
  observation: Observation,
  drift: NodeDrift,
): Promise<StepOutcome> {
  await recordTarget(context, entry, observation);
  await endWith(context, updateRecordOf(entry, observation, 'Failed', drift));
  if (drift.reason === 'UpdateIncomplete') recordWarning(context, 'Degraded', drift.why);
  return again;
}

async function recordTarget(
  { ports }: StepContext,
  entry: JournalEntry,
  observation: Observation,
): Promise<void> {
  const { root } = ports.host;
  // finalizeStaged gave the new /etc the image's own version of all that Shale had written; without a grant nobody
  // called it.
  const isFinalized = entry.bootID !== observation.bootID && entry.withoutGrant !== true;
  if (isFinalized && entry.next.mode === 'Layered') await writeManagedPaths(root, new Map());
  await writeCurrent(root, entry.next);
}

/** Removes what no config has any more of what configs had outside of /etc and /usr; an image can't. */
export async function settleState(context: StepContext): Promise<void> {
  const { root } = context.ports.host;
  const content = await managedContent(root, await readCurrent(root));
  // A record that is lost, or an image whose config can't be read, says nothing of what is left.
  if (content !== undefined) await settleStateAs(context, content);
}

/**
 * As settleState, but by what is said to be the node's content. @param content undefined where Shale has not configured
 * the node.
 */
export async function settleStateAs(
  context: StepContext,
  content: ManagedContent | undefined,
): Promise<void> {
  const { removed, left } = await settleStateContent(writeTarget(context.ports), content, context.signal);
  if (removed.length > 0) context.telemetry.log.info({ removed }, 'Removed what no config has any more');
  if (left.length === 0) return;
  recordWarning(context, 'RemovedPathsLeft', `No MachineConfig has these paths any more: ${left.join('; ')}`);
}

export async function endWith(context: StepContext, record: UpdateRecord): Promise<void> {
  const { root } = context.ports.host;
  await settleState(context);
  await writeLastUpdate(root, record);
  await retireWatchdog(root);
  await context.journal.clear();
  context.memory.prepared = undefined;
  recordUpdate(context, record);
}

export function updateRecordOf(
  entry: JournalEntry,
  { bootID: bootIDAfter, lastUpdate }: Pick<Observation, 'bootID' | 'lastUpdate'>,
  result: UpdateRecord['result'],
  failure?: { readonly why: string; readonly reason: FailureReason },
): UpdateRecord {
  const { bootID: bootIDBefore, startedAt } = entry;
  return {
    ...plannedOf(entry),
    startedAt,
    finishedAt: new Date().toISOString(),
    ...rebootBetween(bootIDBefore, bootIDAfter),
    bootIDBefore,
    bootIDAfter,
    result,
    ...present({ reason: failure?.reason, message: failure?.why }),
    ...earlierThan(entry.plan.actions, lastUpdate),
  };
}

/** What an update was to bring, and how it was to. */
type Planned = Pick<
  UpdateRecord,
  | 'config'
  | 'image'
  | 'actions'
  | 'causes'
  | 'source'
  | 'withoutGrant'
  | 'firstBoot'
  | 'requested'
  | 'liveFailure'
>;

function plannedOf({ plan, withoutGrant, firstBoot }: JournalEntry): Planned {
  const { config, image, actions, causes, source, requested, liveFailure } = plan;
  const marks = { withoutGrant, firstBoot, requested };
  return { config, actions, causes, source, ...present({ image, ...marks, liveFailure }) };
}

/**
 * What a node runs after a boot that brought something else than the record says: an admin's rollback, an image that
 * was staged and never granted, or a deployment that could not be booted. An image's labels say whose it is, whatever
 * mode the node was in; and what Shale noted of a deployment, which kernel arguments it was made with.
 *
 * @param current the record.
 * @returns undefined when the booted image says nothing of Shale: then the node is a fresh one.
 */
export function currentAfterBoot(
  current: Current | undefined,
  { image, labels, addedKernelArguments }: NodeDeployment,
): Current | undefined {
  if (image === undefined) return current;
  const config = labels[imageLabels.renderedConfig];
  // An admin may take any image for the OS image of standard mode.
  if (current?.mode === 'Standard' && (config === undefined || current.rendered.spec.osImageURL === image)) {
    const kernelArguments = [...(addedKernelArguments ?? current.kernelArguments)];
    const isAsRecorded = image === current.baseImage && sameList(kernelArguments, current.kernelArguments);
    return isAsRecorded ? current : { ...current, baseImage: image, kernelArguments };
  }
  if (current?.mode === 'Layered' && image === current.image) return current;
  if (config === undefined) return undefined;
  return { version: 1, mode: 'Layered', config, image, ...basesOf(labels) };
}

/** Makes the record say what the node has booted, after a boot that nobody here asked for. */
export async function correctCurrent(
  { host, backend }: NodePorts,
  current: Current | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { booted } = await backend.status(signal);
  const corrected = currentAfterBoot(current, booted);
  if (corrected !== current) await writeCorrected(host.root, corrected);
}

/** @param corrected undefined for a node that runs nothing of Shale's. */
export async function writeCorrected(root: string, corrected: Current | undefined): Promise<void> {
  if (corrected === undefined) await forgetCurrent(root);
  else await writeCurrent(root, corrected);
}
