import type { NodeDeployment } from '../backend.ts';
import { asBooted, type BootcEntry, type BootcHost } from '../bootc/status.ts';

/** A deployment that bootc keeps in composefs. */
export interface ComposefsDeployment extends Pick<NodeDeployment, 'image' | 'canSoftReboot'> {
  /** The fs-verity digest of its image, by which bootc names it: two images of the same content are one deployment. */
  readonly verity: string;
}

/** A host's deployments, distinguished by their part in booting. */
export interface ComposefsHost {
  readonly booted: ComposefsDeployment;
  /**
   * bootc finalizes it at shutdown, unless its note says otherwise: merges /etc, and makes it the bootloader's first
   * entry.
   */
  readonly staged?: (ComposefsDeployment & { readonly isDownloadOnly: boolean }) | undefined;
  /** The bootloader's first entry, where that is not the booted deployment: one that was finalized, or a rollback. */
  readonly written?: ComposefsDeployment | undefined;
  /** The bootloader's second entry, after the booted deployment. */
  readonly previous?: ComposefsDeployment | undefined;
}

/**
 * Arranges what `bootc status` reports of a host with systemd-boot and BLS entries. The bootloader has at most two
 * entries: each update writes both again. What was finalized counts as staged as long as the note of what is staged is
 * there, and as the rollback afterwards (bootc, bootc_composefs/status.rs).
 *
 * @throws Error when the booted deployment does not use composefs.
 */
export function arrangeHost({ status }: BootcHost): ComposefsHost {
  const booted = deploymentOf(status.booted);
  if (booted === undefined) {
    throw new Error('bootc status: expected a booted deployment with composefs.verity');
  }
  const staged = deploymentOf(status.staged);
  const rollback = deploymentOf(status.rollback);
  const stagedOnly =
    staged === undefined ? undefined : { ...staged, isDownloadOnly: status.staged?.downloadOnly === true };
  if (!status.rollbackQueued) return { booted, staged: stagedOnly, previous: rollback };
  // With a rollback queued, the first entry is that of the deployment that is not booted.
  if (rollback === undefined) return { booted, written: staged };
  return { booted, written: rollback, staged: stagedOnly };
}

function deploymentOf(entry: BootcEntry | null | undefined): ComposefsDeployment | undefined {
  const verity = entry?.composefs?.verity;
  if (entry === undefined || entry === null || verity === undefined || verity === null) return undefined;
  return { verity, ...asBooted(entry) };
}

/** How bootc boots a deployment (bootc, spec.rs: BootType and Bootloader). */
type ComposefsBoot = Pick<NonNullable<BootcEntry['composefs']>, 'bootType' | 'bootloader'>;

/**
 * Why Shale doesn't manage a host whose bootc keeps deployments in composefs; undefined when it does.
 *
 * @param boot what boots the host, as bootc says.
 */
export function composefsObstacle(boot: ComposefsBoot): string | undefined {
  const why = whyNot(boot);
  return (
    why &&
    `bootc keeps its deployments in composefs and not in ostree, booted by ${describeBoot(boot)}: ${why}`
  );
}

function whyNot({ bootType, bootloader }: ComposefsBoot): string | undefined {
  if (bootType === 'Uki') {
    return 'bootc 1.16.9 reports the boot order of unified kernel images the wrong way round; expected BLS entries with systemd-boot';
  }
  if (bootType !== 'Bls') return 'expected BLS entries with systemd-boot';
  if (bootloader === 'systemd') return undefined;
  if (bootloader === 'grub' || bootloader === 'grub-cc') {
    return 'GRUB sorts entries by the version in their file names before anything else, so that a rollback may boot the same deployment again; expected systemd-boot';
  }
  return 'expected systemd-boot';
}

/** bootc's names, as its documentation calls what they stand for. */
const BOOT_TYPES = new Map([
  ['Bls', 'BLS entries'],
  ['Uki', 'a unified kernel image, which has the kernel arguments'],
]);
const BOOTLOADERS = new Map([
  ['systemd', 'systemd-boot'],
  ['grub', 'GRUB'],
  ['grub-cc', 'GRUB for confidential clusters'],
]);

/** @returns what boots a deployment, for people. */
function describeBoot({ bootType, bootloader }: ComposefsBoot): string {
  const type = bootType ?? '';
  const by = bootloader ?? '';
  const boots = BOOT_TYPES.get(type) ?? (type === '' ? 'an unknown boot type' : `boot type ${type}`);
  return by === '' ? boots : `${boots} with ${BOOTLOADERS.get(by) ?? `bootloader ${by}`}`;
}
