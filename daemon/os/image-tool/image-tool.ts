import { type DigestedPullspec, DigestedPullspecSchema } from '../../../api/references.ts';
import type { PackageSet } from '../../../machineconfig/os-packages.ts';

/** What an image tool says of one deployment. */
export interface ToolDeployment {
  readonly isBooted: boolean;
  /** Absent when it was made from no image of a registry, or from one that was changed on this host. */
  readonly image?: DigestedPullspec | undefined;
  /** Kept by the admin (`ostree admin pin`): never cleaned up. */
  readonly isPinned: boolean;
  /** The tool says that the running kernel can go on under it. */
  readonly canSoftReboot?: true | undefined;
  /** What was installed and removed on this host. */
  readonly packages: PackageSet;
}

/** An image tool's deployments, by `<commit>.<serial>`. */
export type ToolDeployments = ReadonlyMap<string, ToolDeployment>;

export interface PullOptions {
  /**
   * Whether the host's policy (containers-policy.json(5)) lets nothing in that isn't signed: then it is passed on to
   * the tool.
   */
  readonly mustBeSigned: boolean;
  readonly signal: AbortSignal;
}

export interface StagePullOptions extends PullOptions {
  /** Whether what is staged is to be locked; the lock is there by then, and must not be taken away. */
  readonly locked: boolean;
}

export interface DeployPackagesOptions extends PullOptions {
  /** All that the deployment is to have beside its image. */
  readonly packages: PackageSet;
  /** Those of the booted deployment that Shale asked for before: they needn't fit another image. */
  readonly former: PackageSet;
}

/**
 * A tool that brings images to an ostree sysroot and knows which deployment is of which image. Everything else, ostree
 * does for it and for Shale alike.
 */
export interface ImageTool {
  readonly name: 'bootc' | 'rpm-ostree';
  /**
   * Whether what is pulled to be locked is so from the first moment, also in place of what was staged before. Otherwise
   * ostree takes the lock away then (from 2023.7 on), and nothing may be staged when the tool pulls.
   */
  readonly keepsLock: boolean;
  /** @throws OsCommandError or an Error. */
  deployments(signal: AbortSignal): Promise<ToolDeployments>;
  /** Pulls an image that no deployment is of, and stages it. @throws OsCommandError */
  pull(image: DigestedPullspec, options: StagePullOptions): Promise<void>;
  /**
   * Prepares a locked deployment of an image with other packages than the booted one has. Nothing is before the booted
   * one. Absent where the tool can't.
   *
   * @throws OsCommandError; what it had prepared by then is locked, too.
   */
  deployPackages?(image: DigestedPullspec, options: DeployPackagesOptions): Promise<void>;
  /**
   * Deletes the deployments that are before the booted one, at least one. @param count of them. @throws OsCommandError
   */
  dropNext(count: number, signal: AbortSignal): Promise<void>;
  /**
   * Makes the deployment after the booted one the next boot. Nothing is before the booted one. @throws OsCommandError
   */
  rollback(signal: AbortSignal): Promise<void>;
  /**
   * The body of a function of a POSIX shell that does `rollback` on a host without a daemon. Something may be staged,
   * and nothing else is before the booted deployment.
   */
  readonly rollbackScript: string;
  /** Deletes data of the tool that no deployment needs. @throws OsCommandError */
  cleanup(signal: AbortSignal): Promise<void>;
}

/**
 * The image by digest that a tool means when it reports the name it pulled and the digest it got.
 *
 * @param name `host/repository`, perhaps with tag, digest or both. @param digest what was found there.
 * @returns nothing when the name has no host, as local images have none.
 */
export function digestedImage(name: string, digest: string | undefined): DigestedPullspec | undefined {
  const at = name.indexOf('@');
  const named = at < 0 ? name : name.slice(0, at);
  const slash = named.lastIndexOf('/');
  const colon = named.indexOf(':', slash);
  const repository = slash >= 0 && colon >= 0 ? named.slice(0, colon) : named;
  const own = at < 0 ? digest : name.slice(at + 1);
  const parsed = DigestedPullspecSchema.safeParse(`${repository}@${own}`);
  return parsed.success ? (parsed.data as DigestedPullspec) : undefined;
}
