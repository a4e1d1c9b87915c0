import { z } from 'zod';
import { Conditions, type Kind, type KubernetesObject, NameReference } from './object.ts';
import { DigestedPullspecSchema, TaggedPullspecSchema } from './references.ts';

const finalOnce = (type: string) => ({
  rule: `oldSelf.exists(x, x.type=='${type}' && x.status=='True') ? self==oldSelf : true`,
  message: `once the condition ${type} is True, conditions are immutable`,
});

export const MachineOSBuildSpec = z.object({
  machineConfig: NameReference.describe('The rendered MachineConfig in the image.'),
  machineOSConfig: NameReference.describe('The MachineOSConfig of the build.'),
  renderedImagePushSpec: TaggedPullspecSchema.describe('Where the image is pushed.'),
  policyDigest: z
    .string()
    .exactOptional()
    .describe(
      "Shale's own: digest of the disruption policies that the transitions in the image's label are computed with.",
    ),
  baseImage: z.string().max(447).exactOptional().describe("Shale's own: the requested base image."),
});

export const MachineOSBuildStatus = z
  .object({
    conditions: Conditions.max(8)
      .meta({ 'x-kubernetes-validations': ['Failed', 'Interrupted', 'Succeeded'].map(finalOnce) })
      .exactOptional()
      .describe('Prepared, Building, Succeeded, Failed, Interrupted.'),
    engineImage: DigestedPullspecSchema.exactOptional().describe(
      "Shale's own: the image that a container engine built on the base image; the layer is appended to it.",
    ),
    logTail: z
      .array(z.string().max(500))
      .max(200)
      .exactOptional()
      .describe("Shale's own: the last lines of the container engine's output, with secrets masked."),
    builder: z
      .object({ imageBuilderType: z.string() })
      .exactOptional()
      .describe('The build method: Append, Relabel or Engine.'),
    relatedObjects: z
      .array(
        z.object({
          group: z.string().describe('API group of the object.'),
          resource: z.string().describe('Resource name of the object, such as machineosbuilds.'),
          namespace: z.string().exactOptional().describe('Namespace of the object, if namespaced.'),
          name: z.string().describe('Name of the object.'),
        }),
      )
      .max(10)
      .exactOptional()
      .describe('Objects related to the build.'),
    buildStart: z.string().meta({ format: 'date-time' }).exactOptional().describe('When the build started.'),
    buildEnd: z.string().meta({ format: 'date-time' }).exactOptional().describe('When the build ended.'),
    digestedImagePushSpec: DigestedPullspecSchema.exactOptional().describe('The image, by digest.'),
    baseImage: z.string().max(447).exactOptional().describe("Shale's own: the base image by digest."),
    instances: z
      .array(
        z.object({
          architecture: z.string().max(64).describe('The architecture as GOARCH, such as amd64.'),
          image: DigestedPullspecSchema,
          baseImage: z.string().max(447).describe('Its base image, by digest.'),
          engineImage: DigestedPullspecSchema.exactOptional(),
        }),
      )
      .max(10)
      .exactOptional()
      .describe(
        "Shale's own: the images in the index, one per architecture of the pool, each with its base image.",
      ),
    attempts: z.int().min(0).exactOptional().describe("Shale's own: number of attempts."),
    transitions: z
      .array(z.object({ from: z.string(), actions: z.string() }))
      .max(50)
      .exactOptional()
      .describe("Shale's own: the actions in the image's label, by what nodes run now."),
  })
  .meta({
    'x-kubernetes-validations': [
      {
        rule: 'has(self.buildEnd) ? has(self.buildStart) && timestamp(self.buildStart) <= timestamp(self.buildEnd) : true',
        message: 'buildEnd must not be before buildStart',
      },
    ],
  });
export type MachineOSBuildStatus = z.infer<typeof MachineOSBuildStatus>;

/** One build of one image. */
export interface MachineOSBuild extends KubernetesObject {
  readonly spec: z.infer<typeof MachineOSBuildSpec>;
  readonly status?: MachineOSBuildStatus;
}

export const MachineOSBuilds: Kind<MachineOSBuild> = {
  group: 'machineconfiguration.openshift.io',
  version: 'v1',
  kind: 'MachineOSBuild',
  plural: 'machineosbuilds',
  namespaced: false,
};

/** MCO's conditions of a build; a build is final once one of the last three is True. */
export type BuildConditionType = 'Prepared' | 'Building' | 'Succeeded' | 'Failed' | 'Interrupted';
