import type { DisruptionAction } from '../api/disruption-action.ts';
import type { MachineConfigNodeSpec, UpdatePlan } from '../api/machine-config-node.ts';
import type { JournalEntry } from './journal/journal.ts';
import type { Current } from './records/current.ts';
import { isAt, isFor, type Target, targetOf } from './target.ts';

/** Everything that the next step depends on. */
export interface DaemonObservation {
  readonly spec: MachineConfigNodeSpec;
  /** Absent on a node that Shale has never configured. */
  readonly current: Current | undefined;
  /** The update that is under way, if one is. */
  readonly journal: JournalEntry | undefined;
  /** The image that the node booted; absent where no image is known. */
  readonly bootedImage: string | undefined;
  readonly bootID: string;
  /** What was worked out for a target: to be used only for that one. */
  readonly plan: UpdatePlan | undefined;
  /** Digest of the registry CAs that are on the disk. */
  readonly registryCAs: string | undefined;
  /** The last update to this target failed, and why; the node waits for another target. */
  readonly failed: { readonly config: string; readonly image?: string; readonly why: string } | undefined;
}

export type Level = 'Live' | 'Disrupt';

export type Step =
  /** Certificates belong to no update: at any time, in any mode, also while one is under way. */
  | { readonly kind: 'applyCertificates'; readonly digest: string }
  /** Goes on with the update that a crash or a reboot interrupted. */
  | { readonly kind: 'applyAgain'; readonly entry: JournalEntry }
  | { readonly kind: 'rebootAgain'; readonly entry: JournalEntry }
  /** The machine has booted what the journal says: verify it, record it, tell. */
  | { readonly kind: 'finish'; readonly entry: JournalEntry }
  /** The machine has booted something else than the journal's target. */
  | { readonly kind: 'fail'; readonly entry: JournalEntry; readonly why: string }
  /** Bring the target to the disk and work out what it will ask of the node. Not disruptive. */
  | { readonly kind: 'prepare'; readonly target: Target }
  | { readonly kind: 'awaitGrant'; readonly target: Target; readonly level: Level }
  | { readonly kind: 'apply'; readonly target: Target; readonly plan: UpdatePlan }
  | { readonly kind: 'reboot'; readonly target: Target; readonly plan: UpdatePlan }
  | { readonly kind: 'degraded'; readonly why: string }
  | { readonly kind: 'idle' };

/**
 * Decides the daemon's next step. After it the node is observed again.
 *
 * An update that was begun is ended before another begins, whatever the operator wants by then: a node is in the old
 * state or the new one, never between.
 */
export function decide(seen: DaemonObservation): Step {
  const certificates = seen.spec.certificates?.registryCAs;
  if (certificates !== undefined && certificates !== seen.registryCAs) {
    return { kind: 'applyCertificates', digest: certificates };
  }
  if (seen.journal !== undefined) return resume(seen.journal, seen);
  const target = targetOf(seen.spec);
  if (isAt(target, seen.current)) return { kind: 'idle' };
  if (seen.failed !== undefined && isFailed(target, seen.failed))
    return { kind: 'degraded', why: seen.failed.why };
  const { plan } = seen;
  if (plan === undefined || !isFor(plan, target) || !plan.staged) return { kind: 'prepare', target };
  const level = levelOf(plan.actions);
  if (!isGranted(seen.spec, target, level)) return { kind: 'awaitGrant', target, level };
  return needsReboot(plan.actions) ? { kind: 'reboot', target, plan } : { kind: 'apply', target, plan };
}

/** @returns the leave that actions need: a drain or a reboot takes workloads from the node, services do not. */
export function levelOf(actions: readonly DisruptionAction[]): Level {
  return actions.some(({ type }) => type === 'Drain' || type === 'Reboot') ? 'Disrupt' : 'Live';
}

function needsReboot(actions: readonly DisruptionAction[]): boolean {
  return actions.some(({ type }) => type === 'Reboot');
}

/** Leave to disrupt is leave to act live too; leave for another target is none. */
function isGranted({ grant }: MachineConfigNodeSpec, target: Target, level: Level): boolean {
  if (grant === undefined || !isFor(grant, target)) return false;
  return level === 'Live' || grant.level === 'Disrupt';
}

function isFailed(target: Target, failed: NonNullable<DaemonObservation['failed']>): boolean {
  return isFor(
    { config: failed.config, ...(failed.image === undefined ? {} : { image: failed.image }) },
    target,
  );
}

function resume(entry: JournalEntry, { bootID, bootedImage }: DaemonObservation): Step {
  const rebooted = entry.bootID !== bootID;
  if (entry.step === 'applying' && !rebooted) return { kind: 'applyAgain', entry };
  if (entry.step === 'rebooting' && !rebooted) return { kind: 'rebootAgain', entry };
  const expected = entry.mode === 'Layered' ? entry.plan.image : entry.baseImage;
  if (expected === undefined || expected === bootedImage) {
    // Written files survive a reboot in the middle of writing them; they are written again, not believed.
    return entry.mode === 'Standard' && entry.step === 'applying'
      ? { kind: 'applyAgain', entry }
      : { kind: 'finish', entry };
  }
  return {
    kind: 'fail',
    entry,
    why: `the node booted ${bootedImage ?? 'no known image'} in place of ${expected}`,
  };
}
