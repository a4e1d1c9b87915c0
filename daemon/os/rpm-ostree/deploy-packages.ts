import type { DigestedPullspec } from '../../../api/references.ts';
import { noPackages, type PackageSet, samePackages, without } from '../../../machineconfig/os-packages.ts';
import type { DeployPackagesOptions } from '../image-tool/image-tool.ts';
import type { RunOsCommand } from '../os-command.ts';
import { imageReference, rpmOstreeDeployments, rpmOstreeStatus } from './status.ts';
import { type RpmOstreeCommand, TransactionLostError, transaction } from './transaction.ts';

/** A whole operating system and its packages over a slow line. */
const TIMEOUT_MS = 3_600_000;
/** Three lead anywhere; the rest is for a daemon that was restarted below one. */
const MOST_TRANSACTIONS = 6;

/**
 * Has rpm-ostree prepare a deployment of an image with these packages, transaction by transaction, each from what there
 * is by then: one whose daemon went away may have been done or not.
 *
 * @throws OsCommandError or an Error.
 */
export async function rpmOstreeDeployPackages(
  run: RunOsCommand,
  image: DigestedPullspec,
  { packages, former, mustBeSigned, signal }: DeployPackagesOptions,
): Promise<void> {
  const reference = imageReference(image, { mustBeSigned });
  for (let left = MOST_TRANSACTIONS; left > 0; left -= 1) {
    const [first] = rpmOstreeDeployments(await rpmOstreeStatus(run, signal)).values();
    const present = { image: first?.image, packages: first?.packages ?? noPackages };
    const next = packageTransaction(present, { image, reference, packages, former });
    if (next === undefined) return;
    const options = { timeoutMs: TIMEOUT_MS, signal, isRepeatable: false };
    await transaction(run, next, options).catch((error: unknown) => {
      if (!(error instanceof TransactionLostError)) throw error;
    });
  }
  throw new Error(
    `rpm-ostree: no deployment of ${image} has the requested packages after ${MOST_TRANSACTIONS} transactions`,
  );
}

/** What a deployment is made of. */
export interface Composition {
  readonly image: string | undefined;
  readonly packages: PackageSet;
}

interface PackageRequest {
  readonly image: string;
  /** How rpm-ostree is to name the image. */
  readonly reference: string;
  readonly packages: PackageSet;
  /** Those of the booted deployment that Shale asked for. */
  readonly former: PackageSet;
}

/** What is staged is nothing yet that should be booted. */
const HELD_BACK = '--lock-finalization';

/**
 * The next transaction on the way from the deployment that rpm-ostree would go on from to the one that is requested. On
 * the same image it is one; so it is onto another image, unless the kernel is another than the image's: that is put
 * back first, since its packages are the old image's, and put in again on the new one (MCO, daemon/update.go
 * queueRevertKernelSwap, switchKernel).
 *
 * @returns undefined when it is as requested.
 */
export function packageTransaction(
  present: Composition,
  request: PackageRequest,
): RpmOstreeCommand | undefined {
  const { packages } = present;
  if (present.image !== request.image) {
    const reset = packages.removed.filter((name) => request.former.removed.includes(name));
    if (reset.length > 0) {
      const uninstall = packages.installed.filter((name) => request.former.installed.includes(name));
      return ['rpm-ostree', 'override', 'reset', HELD_BACK, ...reset, ...flags('uninstall', uninstall)];
    }
    // What takes the place of the image's packages can't be there beside them.
    const isPlain = without(request.packages.removed, packages.removed).length === 0;
    const change = packageChange(packages, request.packages);
    const install = isPlain ? flags('install', change.install) : [];
    const uninstall = flags('uninstall', change.uninstall);
    return ['rpm-ostree', 'rebase', HELD_BACK, request.reference, ...install, ...uninstall];
  }
  if (samePackages(packages, request.packages)) return undefined;
  const { install, uninstall, remove, reset } = packageChange(packages, request.packages);
  const toUninstall = flags('uninstall', uninstall);
  if (reset.length > 0) {
    const toInstall = remove.length === 0 ? flags('install', install) : [];
    return ['rpm-ostree', 'override', 'reset', HELD_BACK, ...reset, ...toInstall, ...toUninstall];
  }
  if (remove.length > 0) {
    const toInstall = flags('install', install);
    return ['rpm-ostree', 'override', 'remove', HELD_BACK, ...remove, ...toInstall, ...toUninstall];
  }
  if (install.length > 0) return ['rpm-ostree', 'install', HELD_BACK, ...install, ...toUninstall];
  return ['rpm-ostree', 'uninstall', HELD_BACK, ...uninstall];
}

function packageChange(present: PackageSet, requested: PackageSet) {
  return {
    install: without(requested.installed, present.installed),
    uninstall: without(present.installed, requested.installed),
    remove: without(requested.removed, present.removed),
    reset: without(present.removed, requested.removed),
  };
}

function flags(name: 'install' | 'uninstall', packages: readonly string[]): readonly string[] {
  return packages.map((each) => `--${name}=${each}`);
}
