import path from 'node:path';
import { present } from '../../../api/present.ts';
import { isThere } from '../../files/tree-entry.ts';
import type { OsTool } from '../os-tool.ts';
import type { Ostree } from '../ostree/ostree.ts';
import { demandsComposefs } from '../ostree/prepare-root.ts';
import { readBootedNote } from '../ostree/run-notes.ts';

/** What has to be the same for the kernel to go on, as checksums of whole directories of a commit. */
interface KernelSide {
  /** Kernel, initramfs and modules; absent where the commit has none at this place. */
  readonly modules?: string;
  /** How the root is set up: ostree's part of the initramfs, and its configuration. */
  readonly prepareRoot?: string;
  /** SELinux' policy, which the kernel was given. */
  readonly policy?: string;
}

/** @returns whether a kernel that was started for one commit can go on under another. */
export function isSameKernelSide(booted: KernelSide, next: KernelSide): boolean {
  return (
    booted.modules !== undefined &&
    booted.modules === next.modules &&
    booted.prepareRoot === next.prepareRoot &&
    booted.policy === next.policy
  );
}

/** @returns whether an ostree of this version has `ostree admin prepare-soft-reboot`. */
export function hasPrepareSoftReboot(version: string | undefined): boolean {
  const [year = 0, release = 0] = (version ?? '').split('.').map(Number);
  return year > 2025 || (year === 2025 && release >= 3);
}

/** systemd 254. bootc also decides by whether the unit is installed. */
const SOFT_REBOOT_TARGET = 'usr/lib/systemd/system/soft-reboot.target';

interface SoftRebootHost {
  readonly tool: OsTool;
  readonly ostree: Ostree;
  /** The running root, as the daemon sees it. */
  readonly root: string;
}

/** Refs or checksums of two commits, both in the repository, and the booted deployment's arguments. */
export interface SoftRebootQuestion {
  readonly booted: string;
  readonly next: string;
  readonly kernelArguments: readonly string[];
}

/**
 * Finds out what ostree tells nobody before it is asked to prepare a soft reboot: whether it would, so that an update's
 * plan can say so. It is asked again then, and refuses also what isn't looked at here: whether kernel arguments change.
 * The configuration of the next commit's root is the same as that of the running one where ostree's part of /usr is.
 *
 * @throws OsCommandError, GVariantError.
 */
export async function canSoftReboot(
  { tool, ostree, root }: SoftRebootHost,
  { kernelArguments, ...commits }: SoftRebootQuestion,
  signal: AbortSignal,
): Promise<boolean> {
  if (!hasPrepareSoftReboot(tool.version)) return false;
  // Its key may be in the initramfs alone, where nothing that runs could read it.
  if ((await readBootedNote(root)).image !== 'composefs') return false;
  // A composefs that runs may be one that needn't have been (`enabled = maybe`), and ostree goes by the configuration.
  if (!(await demandsComposefs({ directory: root, etc: path.join(root, 'etc'), kernelArguments })))
    return false;
  if (!(await isThere(path.join(root, SOFT_REBOOT_TARGET)))) return false;
  const [booted, next] = [
    await kernelSide(ostree, commits.booted, signal),
    await kernelSide(ostree, commits.next, signal),
  ];
  return isSameKernelSide(booted, next);
}

async function kernelSide(ostree: Ostree, commit: string, signal: AbortSignal): Promise<KernelSide> {
  const checksums = await ostree.checksums(commit, ['/usr/lib', '/usr/etc'], signal);
  const [modules, prepareRoot, policy] = ['/usr/lib/modules', '/usr/lib/ostree', '/usr/etc/selinux'].map(
    (place) => checksums.get(place),
  );
  return present({ modules, prepareRoot, policy });
}
