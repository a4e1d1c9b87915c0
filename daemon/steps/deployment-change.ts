import { type DigestedPullspec, parseDigestedPullspec } from '../../api/references.ts';
import { noPackages, samePackages } from '../../machineconfig/os-packages.ts';
import { sameList } from '../../machineconfig/same-list.ts';
import type { ExtraPackages } from '../os/backend.ts';
import { type Current, packagesOf } from '../records/current.ts';

/** The deployment that an update needs as the next boot. */
export interface DeploymentChange {
  readonly image: DigestedPullspec;
  readonly extraKernelArguments: { readonly remove: readonly string[]; readonly add: readonly string[] };
  readonly extraPackages: ExtraPackages;
}

/**
 * What an update changes of the operating system itself.
 *
 * @param current what the node runs. @param bootedImage what it booted, where that is known.
 * @returns undefined when the booted deployment stays: an update in standard mode that only writes files.
 * @throws TypeError when another deployment is needed and it isn't known of which image, or when the image with its
 *   extensions is not named by digest.
 */
export function deploymentChange(
  current: Current | undefined,
  bootedImage: string | undefined,
  next: Current,
): DeploymentChange | undefined {
  const remove = current?.mode === 'Standard' ? current.kernelArguments : [];
  const former = packagesOf(current);
  if (next.mode === 'Layered') {
    return {
      image: parseDigestedPullspec(next.image),
      extraKernelArguments: { remove, add: [] },
      extraPackages: { remove: former, add: noPackages },
    };
  }
  const baseImage = current === undefined ? bootedImage : current.baseImage;
  const stays =
    current?.mode !== 'Layered' &&
    baseImage === next.baseImage &&
    sameList(remove, next.kernelArguments) &&
    samePackages(former, packagesOf(next));
  if (stays) return undefined;
  if (next.baseImage === undefined) {
    throw new TypeError(
      `${next.config}: changes kernel arguments or packages or leaves layering, and neither the node nor spec.osImage says on which OS image; expected spec.osImage by digest`,
    );
  }
  const image = parseDigestedPullspec(next.baseImage);
  return {
    image,
    extraKernelArguments: { remove, add: next.kernelArguments },
    extraPackages: { remove: former, add: packagesOf(next), ...repositoryOf(next) },
  };
}

/** The image that MCO takes extensions and other kernels from. */
function repositoryOf(next: Extract<Current, { mode: 'Standard' }>): Pick<ExtraPackages, 'repository'> {
  const { baseOSExtensionsContainerImage: name = '' } = next.rendered.spec;
  if (name === '' || packagesOf(next).installed.length === 0) return {};
  return { repository: parseDigestedPullspec(name) };
}
