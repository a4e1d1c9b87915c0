import type { BuildContents } from '../api/build-contents.ts';
import type { MachineOSBuild } from '../api/machine-os-build.ts';
import { by } from '../api/order.ts';
import { conditionIsTrue } from '../cluster/update-object.ts';

/** @returns what a build recorded of the inside of its image; of an index, that of its first architecture. */
export function contentsOfBuild({ status }: MachineOSBuild): BuildContents | undefined {
  return status?.contents ?? status?.instances?.find(({ contents }) => contents !== undefined)?.contents;
}

/** @param image by digest. @returns what is recorded of an image. */
export function contentsOfImage(builds: readonly MachineOSBuild[], image: string): BuildContents | undefined {
  const build = builds.find(({ status }) => status?.digestedImagePushSpec === image);
  return build && contentsOfBuild(build);
}

/** @returns what is recorded of the image with a pool's rendered config. */
export function contentsOfConfig(
  builds: readonly MachineOSBuild[],
  pool: string,
  config: string,
): BuildContents | undefined {
  const build = builds
    .filter(({ spec }) => spec.machineOSConfig.name === pool && spec.machineConfig.name === config)
    .filter(({ status }) => conditionIsTrue(status?.conditions, 'Succeeded'))
    .toSorted(by(({ status }) => status?.buildEnd ?? ''))
    // The same image may be labelled again, which changes nothing inside.
    .findLast((each) => contentsOfBuild(each)?.summary !== undefined);
  return build && contentsOfBuild(build);
}
