import { isSoftReboot } from '../api/boot-id.ts';
import { type DisruptionAction, isDisruptive } from '../api/disruption-action.ts';
import { certificateNames } from '../api/node-certificates.ts';
import type { WatchdogMark } from './host/boot-watchdog/watchdog-files.ts';
import { armingStep, disarmingStep } from './next-boot/decide-armed.ts';
import { imageOf } from './records/current.ts';
import { isStuck, type JournalEntry, type JournalEntryAt } from './records/journal.ts';
import { rebootUpdate } from './steps/requested-reboot.ts';
import { type DaemonObservation, isWithheld, type Level, type Step } from './steps/step.ts';
import {
  basisOf,
  isAt,
  isBasedOn,
  isFor,
  isGranted,
  leadsTo,
  type PreparedUpdate,
  reboots,
  type Target,
  targetOf,
  type Update,
} from './steps/update.ts';

/**
 * Decides the daemon's next step. After it the node is observed again.
 *
 * An update that was begun is ended before another begins, whatever the operator wants by then: a node is in the old
 * state or the new one, never between. One that only a reboot can end may end in a reboot into a newer target.
 */
export function decide(observation: DaemonObservation): Step {
  const step = decideFree(observation);
  const { heldBy } = observation.spec;
  if (heldBy === undefined || !WAITS_WHILE_HELD.has(step.kind)) return step;
  return { kind: 'leaveAlone', why: heldBy };
}

/** What changes the disk or the next boot, and was not granted. A repair asks for the lease itself. */
const WAITS_WHILE_HELD: ReadonlySet<Step['kind']> = new Set(['prepare', 'arm', 'stayArmed', 'disarm']);

/** Decides what is next on a node that nobody else holds. */
function decideFree(observation: DaemonObservation): Step {
  const certificate = dueCertificate(observation);
  if (certificate !== undefined) return { kind: 'applyCertificate', ...certificate };
  const { journal, repair, powerOff } = observation;
  if (journal !== undefined) return resume(journal, observation) ?? towardsTarget(observation);
  // The maintenance that powers it off holds the node, so its next boot stays as it is.
  if (powerOff !== undefined) return { kind: 'powerOff', request: powerOff };
  // First of all: until then any reboot boots what the operator may no longer permit.
  const target = targetOf(observation.spec);
  const disarm = disarmingStep(usablePrepared(target, observation), target, observation);
  if (disarm !== undefined) return disarm;
  // Before an update, which is refused while what the node runs is changed by hand.
  return repair === undefined ? towardsTarget(observation) : { kind: 'repair', request: repair };
}

function dueCertificate(observation: DaemonObservation) {
  const { spec, certificates, withheld } = observation;
  for (const name of certificateNames) {
    const version = spec.certificates?.[name];
    if (version === undefined || version === certificates[name]) continue;
    // Without the kubelet's CA the node could not be given back.
    if (spec.heldBy !== undefined && name !== 'kubeletCA') continue;
    if (!isWithheld(withheld.get(name), version, observation)) return { name, version };
  }
  return undefined;
}

function towardsTarget(observation: DaemonObservation): Step {
  const target = targetOf(observation.spec);
  const { journal: stuck } = observation;
  if (stuck === undefined) {
    const failed =
      observation.failed !== undefined &&
      // The target runs; what keeps it from being whole is looked at, and told, as any drift.
      observation.failed.reason !== 'ConfigDrift' &&
      observation.failed.reason !== 'UpdateIncomplete' &&
      isFor(observation.failed, target)
        ? observation.failed
        : undefined;
    if (isAt(target, observation.current)) {
      const reboot = requestedReboot(observation, target);
      if (reboot !== undefined) return reboot;
      return failed === undefined ? { kind: 'idle' } : { kind: 'recheck', why: failed.why };
    }
    if (failed !== undefined && observation.retry === undefined)
      return { kind: 'degraded', why: failed.why, reason: failed.reason };
  } else if (leadsTo(stuck, target)) return whenGranted(observation, target, stuck);
  const prepared = usablePrepared(target, observation);
  if (prepared === undefined) return { kind: 'prepare', target, stuck };
  return armingStep(prepared, target, observation) ?? whenGranted(observation, target, prepared);
}

function requestedReboot(
  { rebootRequested, current, spec }: DaemonObservation,
  target: Target,
): Step | undefined {
  if (rebootRequested === undefined || current === undefined) return undefined;
  const update = rebootUpdate(target, current, rebootRequested);
  return isGranted(spec, target, 'Disrupt') ? { kind: 'reboot', update } : { kind: 'awaitReboot', update };
}

/** @returns what was worked out for the target, while all that it depends on is as it was. */
function usablePrepared(
  target: Target,
  { journal: stuck, prepared, spec }: DaemonObservation,
): PreparedUpdate | undefined {
  const usable =
    prepared !== undefined &&
    spec.irreconcilable === undefined &&
    leadsTo(prepared, target) &&
    prepared.plan.staged &&
    isBasedOn(prepared, basisOf(spec)) &&
    (stuck === undefined || reboots(prepared));
  return usable ? prepared : undefined;
}

function whenGranted({ spec }: DaemonObservation, target: Target, update: Update): Step {
  const level = levelOf(update.plan.actions);
  if (!isGranted(spec, target, level)) return { kind: 'awaitGrant', target, level, update };
  return reboots(update) ? { kind: 'reboot', update } : { kind: 'apply', update };
}

/** @returns the grant level that actions need. */
function levelOf(actions: readonly DisruptionAction[]): Level {
  return isDisruptive(actions) ? 'Disrupt' : 'Live';
}

/** @returns undefined where the update under way leaves the choice of what to reboot into. */
function resume(entry: JournalEntry, observation: DaemonObservation): Step | undefined {
  const mark = watchdogRollback(observation);
  if (mark !== undefined && entry.step !== 'rollingBack') return { kind: 'recordHostRollback', entry, mark };
  const rebooted = entry.bootID !== observation.bootID;
  const target = imageOf(entry.next);
  const bootedTarget = target === undefined || target === observation.bootedImage;
  switch (entry.step) {
    case 'rebooting':
      // A soft reboot that went elsewhere leaves the bootloader as it was: the target is the next boot still.
      if (!rebooted || (isSoftReboot(entry.bootID, observation.bootID) && !bootedTarget)) {
        return unlessInVain(entry, observation, { kind: 'rebootAgain', entry });
      }
      return bootedTarget ? { kind: 'verify', entry } : bootedOther(entry, observation, target);
    case 'verifying':
      return bootedTarget ? { kind: 'verify', entry } : bootedOther(entry, observation, target);
    case 'rollingBack':
      return entry.failedBoot === observation.bootID
        ? unlessInVain(entry, observation, { kind: 'rollBack', entry })
        : resumeRollback(entry, observation);
    case 'applying':
      // Files survive a reboot in the middle of writing them; they are written again, not believed.
      if (rebooted && entry.next.mode === 'Layered' && bootedTarget) return { kind: 'verify', entry };
      return isStuck(entry) ? undefined : { kind: 'applyAgain', entry };
  }
}

/** A machine that is still the same boot after so many requests either does not reboot, or can't be seen to. */
const MOST_REBOOT_REQUESTS = 3;

/**
 * Asking again and again would keep a node down whose reboots can't be seen. Once it has another boot id the update
 * goes on.
 */
function unlessInVain(
  { rebootRequests = 0 }: JournalEntryAt<'rebooting' | 'rollingBack'>,
  { bootID }: DaemonObservation,
  step: Step,
): Step {
  if (rebootRequests < MOST_REBOOT_REQUESTS) return step;
  const why = `the node was asked to reboot ${rebootRequests} times, and its boot id is still ${bootID}: reboot it by hand, and check that /proc/sys/kernel/random/boot_id on the node changes with it`;
  return { kind: 'degraded', reason: 'NotRebooted', why };
}

/**
 * The mark of a watchdog that did roll back. While its deployment is the booted one still, it only meant to, or the
 * loss of power undid it; the daemon, which is there by now, goes on with the update.
 */
function watchdogRollback({ watchdog, bootedDeployment }: DaemonObservation): WatchdogMark | undefined {
  return watchdog?.deployment === bootedDeployment ? undefined : watchdog;
}

function resumeRollback(entry: JournalEntryAt<'rollingBack'>, observation: DaemonObservation): Step {
  // The host boots the former deployment itself, of whatever image it is: what ran may have been applied live on it.
  if (entry.byHost === true && watchdogRollback(observation) !== undefined)
    return { kind: 'finishRollback', entry };
  const before = observation.current === undefined ? undefined : imageOf(observation.current);
  // Where it isn't known what ran before, anything but the target is.
  const isBack =
    before === undefined
      ? imageOf(entry.next) !== observation.bootedImage
      : before === observation.bootedImage;
  return isBack ? { kind: 'finishRollback', entry } : bootedOther(entry, observation, before);
}

function bootedOther(
  entry: JournalEntry,
  { bootedImage }: DaemonObservation,
  expected: string | undefined,
): Step {
  const why = `the node booted ${bootedImage ?? 'no known image'} instead of ${expected ?? 'what ran before'}`;
  return { kind: 'fail', entry, why };
}
