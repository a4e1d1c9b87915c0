import type { MachineOSBuild } from '../api/machine-os-build.ts';
import type { MachineOSConfig } from '../api/machine-os-config.ts';
import { annotations } from '../api/names.ts';
import { BUILD_NAME_VERSION } from './build-name.ts';
import { outcomeOf } from './build-state.ts';

/** What a pool's image is to be made of now. */
export interface WantedImage {
  readonly machineOSConfig: MachineOSConfig;
  readonly renderedConfig: string;
  readonly baseImage: string;
  readonly policyDigest: string;
  readonly architectures: readonly string[];
  /** Older versions built for the architecture that they ran on. In Go's words. */
  readonly ownArchitecture: string;
  readonly rebuild: string | undefined;
}

/**
 * Another version of Shale may have named a build of the same inputs otherwise. Its image is as good as one made now, and
 * making it again would bring every node another target.
 *
 * @returns the finished build that the MachineOSConfig has, where nothing it was made of has changed since; undefined where
 *   that is not certain: then the image is made anew.
 */
export function buildToTakeOver(
  builds: readonly MachineOSBuild[],
  wanted: WantedImage,
): MachineOSBuild | undefined {
  const { metadata, status } = wanted.machineOSConfig;
  // A version that wrote no generation says nothing of what the spec was then.
  if (status?.observedGeneration === undefined || status.observedGeneration !== metadata.generation) return;
  const current = builds.find((build) => build.metadata.name === status.machineOSBuild?.name);
  return current !== undefined && isNamedOtherwise(current) && isOfSameInputs(current, wanted)
    ? current
    : undefined;
}

/** By the rule of this version an equal name would have been found: then an input is another. */
function isNamedOtherwise({ metadata }: MachineOSBuild): boolean {
  return metadata.annotations?.[annotations.buildNameVersion] !== BUILD_NAME_VERSION;
}

function isOfSameInputs(build: MachineOSBuild, wanted: WantedImage): boolean {
  const { machineConfig, baseImage, policyDigest } = build.spec;
  const instances = build.status?.instances?.map(({ architecture }) => architecture);
  const architectures = instances ?? [wanted.ownArchitecture];
  return (
    outcomeOf(build) === 'Succeeded' &&
    // Which value the annotation had when it was built is not known.
    wanted.rebuild === undefined &&
    machineConfig.name === wanted.renderedConfig &&
    baseImage === wanted.baseImage &&
    policyDigest === wanted.policyDigest &&
    architectures.toSorted().join() === wanted.architectures.join()
  );
}
