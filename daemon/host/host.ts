import type { OsBackend } from '../os/backend.ts';
import type { RunOsCommand } from '../os/os-command.ts';
import type { ImageSource } from '../os/ostree/image-source.ts';
import type { RunCheck } from './check-runner.ts';
import type { Relabel, WrongLabels } from './selinux-labels.ts';

/** The machine the daemon runs on, as far as the daemon has to know it. */
export interface Host {
  /**
   * The running root as the daemon sees it: `/` on a host, the DaemonSet's mount of it in a pod, a directory in the
   * sandbox.
   */
  readonly root: string;
  /** @returns an id that changes with each boot, also with one of the userspace alone (api/boot-id.ts). */
  bootID(): Promise<string>;
  /**
   * @returns when the userspace was started, in ms since the epoch, where the kernel was not started with it; undefined
   *   where it was.
   */
  softBootSince(): Promise<number | undefined>;
  /**
   * @returns what the kernel was started with (/proc/cmdline); undefined where the machine has no kernel of its own.
   */
  kernelCommandLine(): Promise<string | undefined>;
  /** Resolves once the booted deployment is known. @throws when that takes too long. */
  bootSettled(signal: AbortSignal): Promise<void>;
  /**
   * Asks for a reboot into what the bootloader has first and returns once the request is made; the process ends by the
   * reboot's SIGTERM soon after. @throws when the request is refused.
   */
  reboot(reason: string, signal: AbortSignal): Promise<void>;
  /** Asks for a power-off; otherwise as reboot. @throws when the request is refused. */
  powerOff(reason: string, signal: AbortSignal): Promise<void>;
  /**
   * As reboot, but of the userspace alone, into the root that was prepared for it (OsBackend.prepareSoftReboot).
   *
   * @throws where it couldn't be distinguished afterwards from no reboot at all.
   */
  rebootSoftly(reason: string, signal: AbortSignal): Promise<void>;
  /** Lets /usr be written to until the next boot. Harmless to repeat. @throws when it can't be. */
  unlockUsr(signal: AbortSignal): Promise<void>;
}

export type ServiceState =
  | 'active'
  | 'inactive'
  | 'failed'
  | 'activating'
  | 'deactivating'
  | 'reloading'
  | 'unknown';

/** systemd, behind what the daemon asks of it. */
export interface ServiceManager {
  daemonReload(signal: AbortSignal): Promise<void>;
  /**
   * Resolves when the unit is active again, not when systemctl has returned. @throws ServiceError on failure or
   * deadline.
   */
  reload(unit: string, signal: AbortSignal): Promise<void>;
  restart(unit: string, signal: AbortSignal): Promise<void>;
  /** Starts a unit that a change brought. */
  start(unit: string, signal: AbortSignal): Promise<void>;
  stop(unit: string, signal: AbortSignal): Promise<void>;
  state(unit: string, signal: AbortSignal): Promise<ServiceState>;
  /** @returns whether systemd has the unit and may start it: it was found, and is not masked. */
  isLoaded(unit: string, signal: AbortSignal): Promise<boolean>;
  /** @returns the last lines of a unit's journal, to explain why it did not do as asked; empty where there are none. */
  lastLines(unit: string, signal: AbortSignal): Promise<string>;
}

/** The password fields of a tree's users (shadow(5)). Secrets: they are compared and never logged. */
export type PasswordFields = ReadonlyMap<string, string>;

/**
 * Sets password fields of a tree, all or none.
 *
 * @param root of the tree, as the daemon sees it.
 */
export type SetPasswords = (root: string, fields: PasswordFields, signal: AbortSignal) => Promise<void>;

/** Everything by which a daemon acts on its node. */
export interface NodePorts {
  readonly host: Host;
  readonly services: ServiceManager;
  readonly backend: OsBackend;
  readonly setPasswords: SetPasswords;
  readonly relabel: Relabel;
  readonly wrongLabels: WrongLabels;
  /** Where the node's images are signed. */
  readonly signatures: Pick<ImageSource, 'isSignedBy'>;
  readonly runCheck: RunCheck;
  /** Where the images that the node keeps are described. */
  readonly images: Pick<ImageSource, 'open'>;
  /** Runs programs of the host that are neither its image tool nor systemd: crictl, ctr. */
  readonly runOnHost: RunOsCommand;
}
