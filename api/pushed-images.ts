import type { MachineOSBuild } from './machine-os-build.ts';
import { annotations } from './names.ts';
import { type DigestedPullspec, DigestedPullspecSchema, repositoryOf } from './references.ts';

/**
 * The images that a build has pushed or was about to push, and those of interrupted builds of the same name. They are in the
 * repository that the build pushes to: another one that a status names is not believed.
 *
 * @returns the oldest first, each once.
 */
export function pushedImages({ metadata, spec, status }: MachineOSBuild): readonly DigestedPullspec[] {
  const earlier = (metadata.annotations?.[annotations.earlierImages] ?? '').split(' ');
  const repository = repositoryOf(spec.renderedImagePushSpec);
  const images = new Set([...earlier, ...(status?.pushedImages ?? [])]);
  return [...images].filter(
    (image): image is DigestedPullspec =>
      DigestedPullspecSchema.safeParse(image).success && repositoryOf(image) === repository,
  );
}

/**
 * Whether {@link pushedImages} names everything that a build has pushed. Builds that earlier versions of Shale created
 * record only the image of a success.
 */
export function recordsPushes({ metadata }: MachineOSBuild): boolean {
  return metadata.annotations?.[annotations.earlierImages] !== undefined;
}
