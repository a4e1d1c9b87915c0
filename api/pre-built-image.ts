import type { MachineOSConfig } from './machine-os-config.ts';
import { annotations } from './names.ts';
import type { KubernetesObject } from './object.ts';
import { DigestedPullspecSchema, repositoryOf, withoutTag } from './references.ts';

/**
 * @param object a MachineOSConfig, or a MachineOSBuild that takes the image.
 * @returns the image that it names; undefined for none, which an empty name is, as with MCO.
 */
export function preBuiltImageOf({ metadata }: Pick<KubernetesObject, 'metadata'>): string | undefined {
  return metadata.annotations?.[annotations.preBuiltImage] || undefined;
}

/**
 * Only a pool without an image starts from one that is named: from then on it is the pool's like any other, and a
 * change of the pool is built.
 *
 * @returns the image that a MachineOSConfig is to start from; undefined where it names none, or has an image.
 */
export function awaitedPreBuiltImage(
  machineOSConfig: Pick<MachineOSConfig, 'metadata' | 'status'>,
): string | undefined {
  return machineOSConfig.status?.currentImagePullSpec === undefined
    ? preBuiltImageOf(machineOSConfig)
    : undefined;
}

/**
 * A tag can be moved after the image was verified, and nodes, signatures and the deletion of images know the pool's own
 * repository alone.
 *
 * @param image as the annotation names it. @param pushSpec `renderedImagePushSpec` of the MachineOSConfig.
 * @returns what is wrong with the name, as `is …; expected …`; undefined for one that can be looked at.
 */
export function preBuiltImageProblem(image: string, pushSpec: string): string | undefined {
  const repository = repositoryOf(pushSpec);
  const isInRepository =
    DigestedPullspecSchema.safeParse(withoutTag(image)).success && repositoryOf(image) === repository;
  return isInRepository
    ? undefined
    : `is ${JSON.stringify(image)}; expected an image by digest in the pool's repository, ${repository}@sha256:<64 hexadecimal digits>`;
}
