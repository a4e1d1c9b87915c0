import path from 'node:path';
import type { DigestedPullspec } from '../../../api/references.ts';
import { noPackages, type PackageSet } from '../../../machineconfig/os-packages.ts';
import { listDeployments, type OstreeDeployment, SysrootError } from '../ostree/deployments.ts';
import { readStagedDeployment, type StagedDeployment } from '../ostree/run-notes.ts';
import type { ImageTool, ToolDeployments } from './image-tool.ts';

/** A deployment as the host has it, with the image that its tool names. */
export interface PlacedDeployment extends OstreeDeployment {
  /** Written to the bootloader at shutdown only. */
  readonly isStaged: boolean;
  readonly isPinned: boolean;
  readonly canSoftReboot: boolean;
  readonly image?: DigestedPullspec | undefined;
  readonly packages: PackageSet;
}

/** A host's deployments, distinguished by their part in booting. */
export interface HostDeployments {
  readonly booted: PlacedDeployment;
  /** Those that the next boot would take before the booted one, the first of them first. */
  readonly next: readonly PlacedDeployment[];
  /** Those after the booted one. */
  readonly previous: readonly PlacedDeployment[];
  /** Staged, but held back from the next boot. */
  readonly heldBack?: PlacedDeployment;
  /** All before the booted one, also one that is staged but held back from the next boot. */
  readonly countBeforeBooted: number;
}

interface DeploymentPlaces {
  readonly tool: Pick<ImageTool, 'deployments'>;
  readonly root: string;
  readonly sysroot: string;
}

/**
 * Lists the host's deployments. Their order and kernel arguments are read where ostree keeps them, since bootc tells
 * neither; what they are made of is the tool's to say.
 *
 * @throws SysrootError, and what the tool throws.
 */
export async function hostDeployments(
  { tool, root, sysroot }: DeploymentPlaces,
  signal: AbortSignal,
): Promise<HostDeployments> {
  return arrangeDeployments({
    known: await tool.deployments(signal),
    staged: await readStagedDeployment(root, sysroot),
    written: await listDeployments(sysroot, path.join(root, 'boot')),
  });
}

interface FoundDeployments {
  readonly known: ToolDeployments;
  readonly staged: StagedDeployment | undefined;
  /** Those that bootloader entries lead to, in boot order. */
  readonly written: readonly OstreeDeployment[];
}

/** @throws SysrootError when the booted deployment isn't among those found. */
function arrangeDeployments({ known, staged, written }: FoundDeployments): HostDeployments {
  const place = (deployment: OstreeDeployment, isStaged: boolean): PlacedDeployment => {
    const { image: _, ...rest } = deployment;
    const about = known.get(deployment.id);
    const { isPinned = false, canSoftReboot = false, packages = noPackages, image } = about ?? {};
    return {
      ...rest,
      isStaged,
      isPinned,
      canSoftReboot,
      packages,
      image,
    };
  };
  const all = written.map((deployment) => place(deployment, false));
  // By its inode the running root can't be recognized: where composefs is on, it is a mount of its own.
  const index = all.findIndex(({ id }) => known.get(id)?.isBooted === true);
  const booted = all[index];
  if (booted === undefined) {
    const names = all.map(({ id }) => id).join(', ');
    throw new SysrootError(`none of the bootloader's deployments is booted: ${names}`);
  }
  const isNext = staged?.isLocked === false;
  const before = index + (staged === undefined ? 0 : 1);
  return {
    booted,
    next: [...(isNext ? [place(staged, true)] : []), ...all.slice(0, index)],
    previous: all.slice(index + 1),
    ...(staged?.isLocked === true ? { heldBack: place(staged, true) } : {}),
    countBeforeBooted: before,
  };
}

/** @returns what ostree has staged, held back or not. */
export function stagedOf({ heldBack, next }: HostDeployments): PlacedDeployment | undefined {
  return heldBack ?? next.find(({ isStaged }) => isStaged);
}
