import type { DigestedPullspec } from '../../api/references.ts';
import type { PackageSet } from '../../machineconfig/os-packages.ts';
import { INSTALLS_NONE, SETS_NO_ARGUMENTS } from '../../machineconfig/standard-mode.ts';
import type { OsTool } from './os-tool.ts';

/** One bootable version of the host's operating system. */
export interface NodeDeployment {
  /** What the OS tool calls it, for messages and for comparing two of them. */
  readonly id: string;
  /** The image it was made from; absent for one that no image made. */
  readonly image?: DigestedPullspec | undefined;
  /** Labels of that image's config. */
  readonly labels: Readonly<Record<string, string>>;
  /** The directory, as the daemon sees it, in which its /usr and /etc lie. */
  readonly root: string;
  readonly kernelArguments: readonly string[];
  /** Those among them that Shale added beyond the image's own; absent where that was not noted. */
  readonly addedKernelArguments?: readonly string[] | undefined;
  /** Why it isn't known which of them Shale added, where a note of that can't be read. */
  readonly unreadableArgumentNotes?: string | undefined;
  /**
   * The tool says that the running kernel can go on under it: the same kernel, initramfs, arguments and SELinux policy.
   */
  readonly canSoftReboot?: true | undefined;
}

/** An image on the disk, as it would be deployed. */
export type FetchedImage = Pick<NodeDeployment, 'labels' | 'kernelArguments' | 'canSoftReboot'>;

export interface OsStatus {
  readonly booted: NodeDeployment;
  /** What the next boot takes, when that is not the booted one. */
  readonly staged?: NodeDeployment | undefined;
  /** What a rollback would take. */
  readonly rollback?: NodeDeployment | undefined;
}

/** Packages that the host itself puts on top of an image, or takes away from it. */
export interface ExtraPackages {
  /** What Shale asked for before. Everything else is the admin's, and stays. */
  readonly remove: PackageSet;
  readonly add: PackageSet;
  /** The image that has their repository; without it they come from the repositories that the host knows. */
  readonly repository?: DigestedPullspec;
}

export interface StageOptions {
  /**
   * Arguments that Shale added beyond the images' own (standard mode): the ones to take away and the ones to have. Of a
   * deployment that was staged with any, and booted before its update was made, those go that it was staged with.
   */
  readonly extraKernelArguments: { readonly remove: readonly string[]; readonly add: readonly string[] };
  /** Absent: as the booted deployment has them. Only rpm-ostree can change any. */
  readonly extraPackages?: ExtraPackages;
  /**
   * Make a deployment of its own even when the booted one is of this image and has these kernel arguments: after a live
   * apply of another image the booted one's /etc holds that image's files, and only a new one is put right by
   * `finalizeStaged`.
   */
  readonly evenIfBooted?: boolean;
  /**
   * Called with the labels of the image before a layer is fetched or a deployment is made. What it throws ends the
   * staging.
   */
  readonly accept?: ((labels: Readonly<Record<string, string>>) => void) | undefined;
  /** Bytes fetched so far and in all. */
  readonly onProgress?: ((bytesDone: number, bytesTotal: number) => void) | undefined;
  /** Ends a fetch as a failure does: its own changes are undone, and what was fetched is kept. */
  readonly interrupt?: AbortSignal;
  readonly signal: AbortSignal;
}

/** @returns the options of a fetch, whose signal its interruption aborts as well. */
export function interruptible(options: StageOptions): StageOptions {
  const { interrupt, signal } = options;
  return interrupt === undefined ? options : { ...options, signal: AbortSignal.any([signal, interrupt]) };
}

/**
 * What keeps the host's operating system. There is an implementation for ostree, one for rpm-ostree and bootc on
 * ostree, and one for bootc with composefs. Everything above speaks of deployments; the few decisions that depend on
 * the tool go by {@link OsTool}.
 */
export interface OsBackend {
  /** @returns which tool it is, for an admin to read. */
  tool(signal: AbortSignal): Promise<OsTool>;
  /** @returns the deployments there are now. @throws OsCommandError */
  status(signal: AbortSignal): Promise<OsStatus>;
  /**
   * Brings all of an image to the disk that `stage` needs, so that no download is left to it, and leaves the next boot
   * as it is: a node without a grant boots what it runs. Not disruptive, idempotent. `cleanup` deletes what was never
   * staged.
   *
   * Where the tool keeps no second deployment beside one that was applied live, that one is given up, and the next boot
   * is the booted deployment.
   *
   * @throws what `stage` throws.
   */
  fetch(image: DigestedPullspec, options: StageOptions): Promise<FetchedImage>;
  /**
   * Makes the image the next boot: pulled by digest, kernel arguments of its kargs.d and the extra ones set. Not
   * disruptive, idempotent, and whole or not at all when interrupted.
   *
   * @throws OsCommandError, or image/'s RegistryError when the pull fails; PackagesRefused and an Error
   *   where those can't be changed; PrepareRefused where the root would not boot, or would lose its /etc.
   */
  stage(image: DigestedPullspec, options: StageOptions): Promise<NodeDeployment>;
  /**
   * Unstages a deployment, also one that was only fetched, so that the next boot is the booted one. Nothing staged:
   * nothing done.
   */
  unstage(signal: AbortSignal): Promise<void>;
  /**
   * The last step before a reboot: the staged deployment's /etc is merged again from the running one (as ostree's
   * staged deployments are at shutdown), except that `managed` paths whose running content still is what Shale put
   * there are no local edits: they become what the staged image has. Without this a file that Shale wrote or applied
   * live would count as the admin's edit and shadow every later image.
   *
   * @param managed absolute paths to the digest that `contentDigest` of daemon/records gives for what Shale put there;
   *   `absent` for a path that Shale removed.
   */
  finalizeStaged(managed: ReadonlyMap<string, string>, signal: AbortSignal): Promise<NodeDeployment>;
  /**
   * Has the next soft reboot take what `finalizeStaged` made. Harmless to repeat; a full reboot takes it as well.
   *
   * @throws SoftRebootRefused where that can't be, OsCommandError.
   */
  prepareSoftReboot(signal: AbortSignal): Promise<void>;
  /**
   * Makes the previous deployment the next boot, in place of what is staged. Harmless to repeat.
   *
   * @throws NoDeploymentError when there is none.
   */
  rollback(signal: AbortSignal): Promise<void>;
  /**
   * How the host itself makes the deployment that is booted now the next boot, once it has booted another one and no
   * daemon is there to do it (daemon/host/boot-watchdog). By then nothing but that other one is before it.
   *
   * @param keep paths that have to be as they are now, though they may differ in the other one's /etc without being an
   *   admin's edits.
   * @returns the body of a function of a POSIX shell, which fails when it can't.
   */
  rollbackScript(keep: readonly string[], signal: AbortSignal): Promise<string>;
  /**
   * How the host itself tells what it has booted and boots next, where no daemon is there to do it.
   *
   * @returns the functions `booted` and `next` of a POSIX shell, which print a deployment's id; `next` may print
   *   anything else for one that is not booted.
   */
  bootScript(signal: AbortSignal): Promise<string>;
  /** Deletes deployments and layers that neither run, nor are staged, nor are the rollback. */
  cleanup(signal: AbortSignal): Promise<void>;
}

/** What keeps the host's operating system installs no packages. Nothing was touched. */
export class PackagesRefused extends Error {
  override readonly name = 'PackagesRefused';
}

/** @param tool that keeps the host's operating system. @throws PackagesRefused where packages are to be changed. */
export function refusePackages(tool: string, extra: ExtraPackages | undefined): void {
  if (!asksForPackages(extra)) return;
  throw new PackagesRefused(`${tool} ${INSTALLS_NONE}`);
}

/**
 * @param tool that keeps the host's operating system. @param added beyond the image's.
 * @throws Error where there are any.
 */
export function refuseKernelArguments(tool: string, added: readonly string[]): void {
  if (added.length === 0) return;
  throw new Error(`kernel arguments ${added.join(' ')}: ${tool} ${SETS_NO_ARGUMENTS}`);
}

/** @returns whether packages are to be there beside an image, or were. */
export function asksForPackages(extra: ExtraPackages | undefined): boolean {
  if (extra === undefined) return false;
  const isSome = ({ installed, removed }: PackageSet) => installed.length + removed.length > 0;
  return isSome(extra.add) || isSome(extra.remove);
}

/** The next deployment doesn't support a soft reboot, or nothing reports that it does. A full reboot boots it. */
export class SoftRebootRefused extends Error {
  override readonly name = 'SoftRebootRefused';
}

/** There is nothing to finalize or to roll back to. */
export class NoDeploymentError extends Error {
  override readonly name = 'NoDeploymentError';
}

/** @returns that `finalizeStaged` has nothing to finalize. */
export function nothingStaged(sysroot: string): NoDeploymentError {
  return new NoDeploymentError(`${sysroot}: nothing is staged; stage the image again`);
}

/** @returns that `rollback` has nothing to roll back to. */
export function nothingBefore(sysroot: string): NoDeploymentError {
  return new NoDeploymentError(`${sysroot}: there is no previous deployment to roll back to`);
}
