import { setTimeout as delay } from 'node:timers/promises';
import { formatAction } from '../../api/disruption-action.ts';
import { armWatchdog } from '../host/boot-watchdog/arm.ts';
import type { Observation } from '../observe.ts';
import type { Current } from '../records/current.ts';
import type { JournalEntry, JournalEntryAt } from '../records/journal.ts';
import { ForeignChangeError, UndoError } from '../standard/write-config.ts';
import { updateLive } from './apply-live.ts';
import { leaseObstacle } from './await-grant.ts';
import { rebootFully, softRebootLeftMs } from './choose-reboot.ts';
import { daemonLimitMs } from './decide-health.ts';
import { finish, inWords } from './end-update.ts';
import { makeNextBoot } from './reboot-into.ts';
import { applySpans } from './spans.ts';
import { again, type Daemon, normal, publish, type StepOutcome, tell, warning } from './step-context.ts';
import { byReboot, type Update } from './update.ts';
import { LiveUpdateFailed, type UpdateContext } from './update-context.ts';

const LEASE_RETRY_MS = 5_000;
/** A machine that was asked to reboot and still runs after this is asked again. */
const REBOOT_DEADLINE_MS = 600_000;

/**
 * @param holder who gave leave, and has to hold the node's lease still.
 * @returns how long to wait for the lease; undefined when the node may be touched.
 */
export async function waitForLease(
  daemon: Daemon,
  { plan }: Pick<Update, 'plan'>,
  holder: string,
  seen: Observation,
): Promise<StepOutcome | undefined> {
  const why = await leaseObstacle({
    client: daemon.client,
    node: daemon.nodeName,
    namespace: daemon.leaseNamespace,
    holder,
    signal: daemon.signal,
  });
  if (why === undefined) return undefined;
  await publish(daemon, seen, { kind: 'waiting', plan, why });
  return { kind: 'wait', ms: LEASE_RETRY_MS };
}

/** Begins an update that needs no reboot, while the node's lease is the operator's. */
export async function beginLive(daemon: Daemon, update: Update, seen: Observation): Promise<StepOutcome> {
  const obstacle = await waitForLease(daemon, update, holderOf(seen), seen);
  if (obstacle !== undefined) return obstacle;
  const entry = newEntry(update, seen);
  await daemon.journal.write(entry);
  return applyLiveFrom(daemon, entry, seen, false);
}

function newEntry({ plan, next }: Update, seen: Observation): JournalEntryAt<'applying'> {
  return {
    version: 1,
    step: 'applying',
    plan,
    next,
    bootID: seen.bootID,
    startedAt: new Date().toISOString(),
    leaseHolder: holderOf(seen),
  };
}

function holderOf({ spec }: Observation): string {
  return spec.grant?.leaseHolder ?? '';
}

/**
 * Applies what the journal says to the running system.
 *
 * @param isAgain the update was begun before; how far it came is not known.
 */
export async function applyLiveFrom(
  daemon: Daemon,
  entry: JournalEntry,
  seen: Observation,
  isAgain: boolean,
): Promise<StepOutcome> {
  const { journal } = daemon;
  await tell(daemon, seen, { kind: 'applying', plan: entry.plan, doing: 'content' });
  const spans = applySpans(daemon, entry);
  const context = contextOf(daemon, entry, seen, isAgain);
  const { beforeAction } = context;
  try {
    await updateLive(
      {
        ...context,
        beforeAction: (action) => {
          spans.begin(action);
          return beforeAction(action);
        },
      },
      entry,
    );
    spans.end();
  } catch (error) {
    if (!daemon.signal.aborted) spans.end(error instanceof Error ? error.name : 'Error');
    if (error instanceof LiveUpdateFailed) {
      const why = `could not be applied live: ${error.message}`;
      const written = entry.next.mode === 'Standard' ? { written: true } : {};
      await journal.write({ ...byReboot(entry, why), ...written });
      warning(daemon, 'LiveApplyFailed', `${entry.plan.config} ${why}; it needs a reboot`);
      return again;
    }
    // Nothing was changed, or all of it was taken back: the update has not begun.
    const isAsBefore = !daemon.signal.aborted && !(error instanceof UndoError);
    if (!isAgain && isAsBefore) await journal.clear();
    throw error;
  }
  return finish(daemon, entry, seen);
}

function contextOf(daemon: Daemon, entry: JournalEntry, seen: Observation, isAgain: boolean): UpdateContext {
  return {
    ports: daemon.ports,
    current: onDisk(seen),
    again: isAgain,
    actionLimits: daemon.actionLimits,
    afterWriting: () => daemon.journal.write({ ...entry, written: true }),
    beforeAction: (action) =>
      tell(daemon, seen, { kind: 'applying', plan: entry.plan, doing: formatAction(action) }),
    signal: daemon.signal,
  };
}

/** What the disk has: the record, unless an update that waits for its reboot has written its config over it. */
function onDisk({ current, journal, bootedImage }: Observation): Current | undefined {
  if (journal?.written !== true) return current;
  return writtenOver(current, journal.next, bootedImage);
}

/**
 * What the disk has once a config of standard mode was written to it, and no other deployment is booted.
 *
 * @param bootedImage the image, for a node that Shale had not configured.
 */
export function writtenOver(
  current: Current | undefined,
  next: Current,
  bootedImage?: string,
): Current | undefined {
  if (next.mode !== 'Standard') return current;
  const { config, rendered } = next;
  const booted = bootedImage === undefined ? {} : { baseImage: bootedImage };
  const kept = current?.mode === 'Standard' ? current : { kernelArguments: [], ...booted };
  return { version: 1, mode: 'Standard', ...kept, config, rendered };
}

/** Makes the target the next boot and asks for it, while the node's lease is the operator's. */
export async function rebootInto(daemon: Daemon, update: Update, seen: Observation): Promise<StepOutcome> {
  const obstacle = await waitForLease(daemon, update, holderOf(seen), seen);
  if (obstacle !== undefined) return obstacle;
  const { journal } = daemon;
  const entry = newEntry(update, seen);
  await journal.write(entry);
  await tell(daemon, seen, { kind: 'applying', plan: entry.plan, doing: 'the next boot' });
  const resumed = seen.journal !== undefined;
  try {
    await makeNextBoot(contextOf(daemon, entry, seen, resumed), entry);
  } catch (error) {
    // Nothing has begun: an update that is over before its first step must not come again by force.
    if (error instanceof ForeignChangeError) await journal.clear();
    throw error;
  }
  await watchNextBoot(daemon);
  const rebooting: JournalEntry = { ...entry, step: 'rebooting', rebootingSince: new Date().toISOString() };
  await journal.write(rebooting);
  await tell(daemon, seen, { kind: 'rebooting', plan: entry.plan });
  const how = entry.plan.softReboot === true ? 'reboots softly' : 'reboots';
  normal(daemon, 'Rebooting', `${how} into ${inWords(entry)}: ${entry.plan.source}`);
  return requestReboot(daemon, rebooting);
}

/**
 * Where the host's watchdog can't be put the target is rebooted into all the same, as on a host with a read-only /etc; what
 * may pass, such as a full disk, is waited for.
 */
async function watchNextBoot(daemon: Daemon): Promise<void> {
  const { healthLimits, ports, signal } = daemon;
  const limitMs = daemonLimitMs(healthLimits);
  if (limitMs === undefined) return;
  try {
    await armWatchdog(ports, { limitMs, signal });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === undefined || !UNWRITABLE.has(code)) throw error;
    warning(daemon, 'BootUnwatched', `no one goes back when no daemon comes up: ${message}`);
  }
}

const UNWRITABLE: ReadonlySet<string> = new Set(['EROFS', 'EPERM', 'EACCES']);

/** The process is ended by the reboot; one that does not come is asked for again. */
export async function requestReboot(
  daemon: Daemon,
  entry: JournalEntry,
  reason = `shale: update to ${inWords(entry)}`,
): Promise<StepOutcome> {
  const { ports, tracer, signal } = daemon;
  await tracer.flush();
  if (entry.step === 'rebooting' && entry.plan.softReboot === true) {
    const why = await requestSoftReboot(daemon, entry, reason);
    await daemon.journal.write({ ...entry, plan: rebootFully(entry.plan, why) });
    warning(daemon, 'SoftRebootFailed', `reboots fully into ${inWords(entry)}: ${why}`);
  }
  await ports.host.reboot(reason, signal);
  await delay(REBOOT_DEADLINE_MS, undefined, { signal });
  return again;
}

/** @returns why it did not take place: the process is ended by one that does. */
async function requestSoftReboot(
  { ports: { backend, host }, softRebootLimitMs, signal }: Daemon,
  { bootID, rebootingSince }: JournalEntry,
  reason: string,
): Promise<string> {
  if ((await host.bootID()) !== bootID) return 'a soft reboot took place, and not into the target';
  const leftMs = softRebootLeftMs(rebootingSince, Date.now(), softRebootLimitMs);
  const late = `it did not take place within ${softRebootLimitMs / 1000} s`;
  if (leftMs === 0) return late;
  try {
    await backend.prepareSoftReboot(signal);
    await host.rebootSoftly(reason, signal);
  } catch (error) {
    signal.throwIfAborted();
    return error instanceof Error ? error.message : String(error);
  }
  await delay(leftMs, undefined, { signal });
  return late;
}
