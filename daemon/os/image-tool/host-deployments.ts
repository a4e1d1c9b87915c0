import path from 'node:path';
import { noPackages } from '../../../machineconfig/os-packages.ts';
import type { OsHost } from '../os-host.ts';
import { listDeployments, type OstreeDeployment, SysrootError } from '../ostree/deployments.ts';
import { readStagedDeployment, type StagedDeployment } from '../ostree/run-notes.ts';
import type { ImageTool, ToolDeployment, ToolDeployments } from './image-tool.ts';

/** A deployment of the host, with what its tool reports about it, such as the image. */
export interface PlacedDeployment extends Omit<OstreeDeployment, 'image'>, ToolDeployment {
  /** Written to the bootloader at shutdown only. */
  readonly isStaged: boolean;
}

/** A host's deployments, distinguished by their part in booting. */
export interface HostDeployments {
  readonly booted: PlacedDeployment;
  /** Those that the next boot would take before the booted one, the first of them first. */
  readonly next: readonly PlacedDeployment[];
  /** Those after the booted one. */
  readonly previous: readonly PlacedDeployment[];
  /** Staged and locked (ostree's `--lock-finalization`): not the next boot. */
  readonly locked: PlacedDeployment | undefined;
  /** All before the booted one, also one that is staged, locked or not. */
  readonly countBeforeBooted: number;
}

/**
 * Lists the host's deployments. Their order and kernel arguments are read where ostree keeps them, since bootc reports
 * neither; their contents are reported by the tool.
 *
 * @throws SysrootError, and what the tool throws.
 */
export async function hostDeployments(
  {
    tool,
    root,
    sysroot,
  }: Pick<OsHost, 'root' | 'sysroot'> & { readonly tool: Pick<ImageTool, 'deployments'> },
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

/** What is known of a deployment of which its tool says nothing. */
const NOT_LISTED: ToolDeployment = { isBooted: false, isPinned: false, packages: noPackages };

/** @throws SysrootError when the booted deployment isn't among those found. */
function arrangeDeployments({ known, staged, written }: FoundDeployments): HostDeployments {
  const withTool = ({ image: _, ...deployment }: OstreeDeployment) => ({
    ...deployment,
    ...(known.get(deployment.id) ?? NOT_LISTED),
  });
  const all = written.map((deployment) => ({ ...withTool(deployment), isStaged: false }));
  const notWritten = staged && { ...withTool(staged), isStaged: true };
  // By its inode the running root can't be recognized: where composefs is on, it is a mount of its own.
  const index = all.findIndex(({ isBooted }) => isBooted);
  const booted = all[index];
  if (booted === undefined) {
    const names = all.map(({ id }) => id).join(', ');
    throw new SysrootError(`none of the bootloader's deployments is booted: ${names}`);
  }
  return {
    booted,
    next: [...(notWritten && staged?.isLocked === false ? [notWritten] : []), ...all.slice(0, index)],
    previous: all.slice(index + 1),
    locked: staged?.isLocked === true ? notWritten : undefined,
    countBeforeBooted: index + (staged === undefined ? 0 : 1),
  };
}

/** @returns what ostree has staged, locked or not. */
export function stagedOf({ locked, next }: HostDeployments): PlacedDeployment | undefined {
  return locked ?? next.find(({ isStaged }) => isStaged);
}
