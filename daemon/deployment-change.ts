import { type DigestedPullspec, parseDigestedPullspec } from '../api/references.ts';
import type { Current } from './records/current.ts';

/** The deployment that an update needs as the next boot. */
export interface DeploymentChange {
  readonly image: DigestedPullspec;
  readonly extraKernelArguments: { readonly remove: readonly string[]; readonly add: readonly string[] };
}

/**
 * What an update changes of the operating system itself.
 *
 * @param current what the node runs. @param bootedImage what it booted, where that is known.
 * @returns undefined when the booted deployment stays: an update in standard mode that only writes files.
 * @throws TypeError when another deployment is needed and it isn't known of which image.
 */
export function deploymentChange(
  current: Current | undefined,
  bootedImage: string | undefined,
  next: Current,
): DeploymentChange | undefined {
  const remove = current?.mode === 'Standard' ? current.kernelArguments : [];
  if (next.mode === 'Layered')
    return { image: parseDigestedPullspec(next.image), extraKernelArguments: { remove, add: [] } };
  const baseImage = current === undefined ? bootedImage : current.baseImage;
  const stays =
    current?.mode !== 'Layered' && baseImage === next.baseImage && sameList(remove, next.kernelArguments);
  if (stays) return undefined;
  if (next.baseImage === undefined) {
    throw new TypeError(
      `${next.config}: changes kernel arguments or leaves layering, and neither the node nor spec.osImage says on which OS image; expected spec.osImage by digest`,
    );
  }
  const image = parseDigestedPullspec(next.baseImage);
  return { image, extraKernelArguments: { remove, add: next.kernelArguments } };
}

function sameList(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((value, index) => value === b[index]);
}
