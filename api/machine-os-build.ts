import { z } from 'zod';
import { Conditions, type Kind, type KubernetesObject, NameReference } from './object.ts';
import { DigestedPullspecSchema, TaggedPullspecSchema } from './references.ts';

const finalOnce = (type: string) => ({
  rule: `oldSelf.exists(x, x.type=='${type}' && x.status=='True') ? self==oldSelf : true`,
  message: `once the condition ${type} is True, conditions are immutable`,
});

export const MachineOSBuildSpec = z.object({
  machineConfig: NameReference.describe('The rendered MachineConfig that the image carries.'),
  machineOSConfig: NameReference.describe('The MachineOSConfig that asked for the image.'),
  renderedImagePushSpec: TaggedPullspecSchema.describe('Where the image is pushed.'),
  policyDigest: z
    .string()
    .exactOptional()
    .describe("Shale's own: digest of the disruption policies whose transitions the image's label states."),
  baseImage: z
    .string()
    .max(447)
    .exactOptional()
    .describe("Shale's own: the base image the build was asked for."),
});

export const MachineOSBuildStatus = z
  .object({
    conditions: Conditions.max(8)
      .meta({ 'x-kubernetes-validations': ['Failed', 'Interrupted', 'Succeeded'].map(finalOnce) })
      .exactOptional()
      .describe('Prepared, Building, Succeeded, Failed, Interrupted.'),
    engineImage: DigestedPullspecSchema.exactOptional().describe(
      "Shale's own: what a container engine made of the base image, and the image stands on.",
    ),
    logTail: z
      .array(z.string().max(500))
      .max(200)
      .exactOptional()
      .describe("Shale's own: the last lines that a container engine printed, secrets masked."),
    builder: z
      .object({ imageBuilderType: z.string() })
      .exactOptional()
      .describe('How the image was made: Append, Relabel or Engine.'),
    relatedObjects: z
      .array(
        z.object({
          group: z.string().describe('API group of the object.'),
          resource: z.string().describe('Its kind as kubectl names it, in the plural.'),
          namespace: z.string().exactOptional().describe('Its namespace, where it has one.'),
          name: z.string().describe('Its name.'),
        }),
      )
      .max(10)
      .exactOptional()
      .describe('Objects that have to do with the build.'),
    buildStart: z.string().meta({ format: 'date-time' }).exactOptional().describe('When it began.'),
    buildEnd: z.string().meta({ format: 'date-time' }).exactOptional().describe('When it was over.'),
    digestedImagePushSpec: DigestedPullspecSchema.exactOptional().describe('The image, by digest.'),
    baseImage: z.string().max(447).exactOptional().describe("Shale's own: the base image by digest."),
    instances: z
      .array(
        z.object({
          architecture: z.string().max(64).describe("In Go's words, such as amd64."),
          image: DigestedPullspecSchema,
          baseImage: z.string().max(447).describe('What it stands on, by digest.'),
          engineImage: DigestedPullspecSchema.exactOptional(),
        }),
      )
      .max(10)
      .exactOptional()
      .describe(
        "Shale's own: the images of which the image is an index, in a pool of mixed architectures; each with what it stands on.",
      ),
    attempts: z.int().min(0).exactOptional().describe("Shale's own: how often the build was tried."),
    transitions: z
      .array(z.object({ from: z.string(), actions: z.string() }))
      .max(50)
      .exactOptional()
      .describe("Shale's own: what the image's label asks of nodes, in words, by what they run now."),
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

/** MCO's conditions of a build; a build with one of the last three True is over. */
export type BuildConditionType = 'Prepared' | 'Building' | 'Succeeded' | 'Failed' | 'Interrupted';
