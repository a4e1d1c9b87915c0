import type {
  PowerOffRequest,
  RepairRecord,
  RepairRequest,
  RetryRequest,
} from '../../api/annotation-requests.ts';
import type { FailureReason, MachineConfigNodeSpec, UpdateRecord } from '../../api/machine-config-node.ts';
import type { CertificateName, CertificateVersions } from '../../api/node-certificates.ts';
import type { BootedArguments } from '../content/drift/kernel-argument-drift.ts';
import type { WatchdogMark } from '../host/boot-watchdog/watchdog-files.ts';
import type { ArmedBoot, ArmingStep } from '../next-boot/armed-boot.ts';
import type { OsTool } from '../os/os-tool.ts';
import type { Current } from '../records/current.ts';
import type { JournalEntry, JournalEntryAt } from '../records/journal.ts';
import type { PreparedUpdate, Target, Update } from './update.ts';

/** What the node booted, and what it boots next. */
export interface ObservedBoot {
  readonly bootID: string;
  /** The image that the node booted; undefined where no image is known. */
  readonly bootedImage: string | undefined;
  /** What the OS tool calls the deployment that the node booted. */
  readonly bootedDeployment: string;
  /** What the OS tool calls the deployment that boots next, where that is another one. */
  readonly nextDeployment: string | undefined;
  /** The target that is the next boot and waits for a reboot by somebody else. */
  readonly armed: ArmedBoot | undefined;
  /** What the boot watchdog of the host has done. */
  readonly watchdog: WatchdogMark | undefined;
}

/** What the daemon's records on the disk have. */
export interface ObservedRecords {
  /** Undefined on a node that Shale has never configured. */
  readonly current: Current | undefined;
  /** The update that is under way, if one is. */
  readonly journal: JournalEntry | undefined;
  /** Versions of the certificates that are on the disk. */
  readonly certificates: CertificateVersions;
  /** The last update to this target failed, and why; the node waits for another target, or for a request to retry. */
  readonly failed:
    | {
        readonly config: string;
        readonly image: string | undefined;
        readonly why: string;
        readonly reason: FailureReason;
      }
    | undefined;
}

/** What the operator and admins request of the node. */
export interface ObservedRequests {
  readonly spec: MachineConfigNodeSpec;
  /** What an admin requests, and no daemon has carried out yet. */
  readonly repair: RepairRequest | undefined;
  /** What an admin requests about `failed`: the node takes the target again. */
  readonly retry: RetryRequest | undefined;
  /** Why the node is to reboot although it runs its target; undefined where nothing requests it. */
  readonly rebootRequested: string | undefined;
  /** A maintenance requests that the machine is powered off. */
  readonly powerOff: PowerOffRequest | undefined;
}

/** Everything that the next step depends on. */
export interface DaemonObservation extends ObservedBoot, ObservedRecords, ObservedRequests {
  /** What was worked out for a target: to be used only for that one. */
  readonly prepared: PreparedUpdate | undefined;
  /** What could not be applied of the certificates. */
  readonly withheld: WithheldCertificates;
}

export type Level = 'Live' | 'Disrupt';

export type Step =
  /** Restore what was changed by hand, as an admin requests. */
  | { readonly kind: 'repair'; readonly request: RepairRequest }
  /** Power the machine off, as a maintenance requests. */
  | { readonly kind: 'powerOff'; readonly request: PowerOffRequest }
  /** Certificates belong to no update: at any time, in any mode, also while one is under way. */
  | { readonly kind: 'applyCertificate'; readonly name: CertificateName; readonly version: string }
  /** Continue the update that a crash or a reboot interrupted. */
  | { readonly kind: 'applyAgain'; readonly entry: JournalEntryAt<'applying'> }
  | { readonly kind: 'rebootAgain'; readonly entry: JournalEntryAt<'rebooting'> }
  /** The machine has booted what the journal says: check that it is healthy, and end the update or roll back. */
  | { readonly kind: 'verify'; readonly entry: JournalEntry }
  /** The target is not healthy: make what ran before the next boot, and reboot. */
  | { readonly kind: 'rollBack'; readonly entry: JournalEntryAt<'rollingBack'> }
  /**
   * The host rolled back by itself, because no daemon started in the target: the update ends as one that is not
   * healthy.
   */
  | { readonly kind: 'recordHostRollback'; readonly entry: JournalEntry; readonly mark: WatchdogMark }
  /** The machine has booted what ran before: record and report that. */
  | { readonly kind: 'finishRollback'; readonly entry: JournalEntryAt<'rollingBack'> }
  /** The machine has booted something else than the journal's target. */
  | { readonly kind: 'fail'; readonly entry: JournalEntry; readonly why: string }
  /**
   * Stage the target and work out what it requires of the node. Not disruptive. `stuck`: the update that
   * left the running system between two states, which only a reboot ends.
   */
  | { readonly kind: 'prepare'; readonly target: Target; readonly stuck: JournalEntry | undefined }
  | {
      readonly kind: 'awaitGrant';
      readonly target: Target;
      readonly level: Level;
      readonly update: Update;
    }
  /** The node runs its target, and somebody requests a reboot. */
  | { readonly kind: 'awaitReboot'; readonly update: Update }
  | ArmingStep
  | { readonly kind: 'apply'; readonly update: Update }
  | { readonly kind: 'reboot'; readonly update: Update }
  /** Somebody else holds the node: what is not granted changes nothing, and its next boot stays as it is. */
  | { readonly kind: 'leaveAlone'; readonly why: string }
  | { readonly kind: 'degraded'; readonly why: string; readonly reason: FailureReason }
  /** The node runs its target and was not healthy, with nothing to roll back to: it may be by now. */
  | { readonly kind: 'recheck'; readonly why: string }
  | { readonly kind: 'idle' };

export interface Observation extends DaemonObservation {
  /** Of the MachineConfigNode that `spec` is from. */
  readonly generation: number | undefined;
  readonly lastUpdate: UpdateRecord | undefined;
  readonly lastRepair: RepairRecord | undefined;
  readonly osBackend: OsTool;
  readonly kernelArguments: BootedArguments;
}

/** A certificate that could not be applied, and why. */
export interface Withheld {
  readonly version: string;
  /** The node's configs then (`configsOf`); under others it is tried again. */
  readonly under: string;
  /** Who held the node then (spec.heldBy); once another has, or nobody, it is tried again. */
  readonly heldBy?: string | undefined;
  readonly reason: 'OwnedByMachineConfig' | 'LeaseHeld' | 'NotApplied';
  /** In words, without contents. */
  readonly why: string;
  /** Its time has come to be tried again. */
  readonly isDue: boolean;
}

export type WithheldCertificates = ReadonlyMap<CertificateName, Withheld>;

/**
 * @returns whether something may change without the daemon being told, so that it is to be tried again after a while.
 */
export function isTriedAgain({ reason }: Withheld): boolean {
  return reason !== 'OwnedByMachineConfig';
}

/** @returns whether this version is not to be tried now. */
export function isWithheld(
  withheld: Withheld | undefined,
  version: string,
  observation: Parameters<typeof configsOf>[0] & Pick<DaemonObservation, 'spec'>,
): boolean {
  return (
    withheld?.isDue === false &&
    withheld.version === version &&
    withheld.under === configsOf(observation) &&
    withheld.heldBy === observation.spec.heldBy
  );
}

/** @returns the config that a node runs and the one that it is on the way to, in one word. */
export function configsOf({
  current,
  journal,
}: {
  readonly current: Pick<Current, 'config'> | undefined;
  readonly journal: { readonly next: Pick<Current, 'config'> } | undefined;
}): string {
  return [current?.config, journal?.next.config].filter((config) => config !== undefined).join(' ');
}
