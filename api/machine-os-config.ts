import { z } from 'zod';
import { Conditions, type Kind, type KubernetesObject, NameReference, ObservedGeneration } from './object.ts';
import { DigestedPullspecSchema, TaggedPullspecSchema } from './references.ts';

export const MachineOSConfigSpec = z.object({
  machineConfigPool: NameReference.describe('The pool that the image is for; the object has its name.'),
  imageBuilder: z
    .object({ imageBuilderType: z.enum(['Job']) })
    .exactOptional()
    .describe("MCO's field; taken and not needed: Shale appends a layer where no command has to run."),
  baseImagePullSecret: NameReference.exactOptional().describe("Secret with the base image's credentials."),
  renderedImagePushSecret: NameReference.exactOptional().describe(
    'Secret with the credentials to push the image.',
  ),
  renderedImagePushSpec: TaggedPullspecSchema.describe(
    'Where the image is pushed: host[:port]/repository:tag.',
  ),
  baseImage: z
    .string()
    .max(447)
    .exactOptional()
    .describe("Shale's own: the base image, when no MachineConfig of the pool sets osImageURL."),
  containerFile: z
    .array(
      z.object({
        containerfileArch: z
          .enum(['ARM64', 'AMD64', 'PPC64LE', 'S390X', 'NoArch'])
          .default('NoArch')
          .describe('The architecture that it is for; NoArch: those that have no other.'),
        content: z.string().max(4096).describe('The text of the Containerfile.'),
      }),
    )
    .max(4)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['containerfileArch'] })
    .exactOptional()
    .describe('Commands to run in the image, per architecture. Needs a container engine.'),
  packages: z
    .array(
      z
        .string()
        .max(255)
        .regex(/^[A-Za-z0-9][A-Za-z0-9+._:~=-]*$/),
    )
    .max(200)
    .exactOptional()
    .describe("Shale's own: packages to install in the image. Needs a container engine."),
  buildArguments: z
    .array(
      z.object({
        name: z
          .string()
          .max(255)
          .regex(/^[A-Za-z_][A-Za-z0-9_]*$/)
          .describe('Of the ARG.'),
        value: z.string().max(4096).describe('Its value.'),
      }),
    )
    .max(50)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] })
    .exactOptional()
    .describe(
      "Shale's own: values of the Containerfile's ARGs. They stand in the image's history: no secrets.",
    ),
  buildSecrets: z
    .array(NameReference)
    .max(20)
    .exactOptional()
    .describe(
      "Shale's own: Secrets beside the builder that commands may read at /run/secrets/<Secret>/<key>, with RUN --mount=type=secret,id=<Secret>/<key>. They reach no layer.",
    ),
});
export type MachineOSConfigSpec = z.infer<typeof MachineOSConfigSpec>;

export const MachineOSConfigStatus = z.object({
  conditions: Conditions.exactOptional(),
  observedGeneration: ObservedGeneration.exactOptional(),
  currentImagePullSpec: DigestedPullspecSchema.exactOptional().describe('The last image built, by digest.'),
  machineOSBuild: z
    .object({
      group: z.string().describe('API group of the object.'),
      resource: z.string().describe('Its kind as kubectl names it, in the plural.'),
      namespace: z.string().exactOptional().describe('Its namespace, where it has one.'),
      name: z.string().describe('Its name.'),
    })
    .exactOptional()
    .describe('The MachineOSBuild of the image that is built or was built last.'),
});

/** A pool's wish for a layered image. */
export interface MachineOSConfig extends KubernetesObject {
  readonly spec: MachineOSConfigSpec;
  readonly status?: z.infer<typeof MachineOSConfigStatus>;
}

export const MachineOSConfigs: Kind<MachineOSConfig> = {
  group: 'machineconfiguration.openshift.io',
  version: 'v1',
  kind: 'MachineOSConfig',
  plural: 'machineosconfigs',
  namespaced: false,
};

/** Same rule as MCO's: one MachineOSConfig per pool, under the pool's name. */
export const machineOSConfigRules = [
  {
    rule: 'self.metadata.name == self.spec.machineConfigPool.name',
    message:
      'MachineOSConfig name must match the referenced MachineConfigPool name; can only have one MachineOSConfig per MachineConfigPool',
  },
];
