import { z } from 'zod';
import { BuildContents } from './build-contents.ts';
import { annotations } from './names.ts';
import {
  Conditions,
  clusterKind,
  type KubernetesObject,
  MCO_V1,
  NameReference,
  RelatedObject,
  Timestamp,
} from './object.ts';
import {
  type DigestedPullspec,
  DigestedPullspecSchema,
  repositoryOf,
  TaggedPullspecSchema,
} from './references.ts';
import { BaseVulnerabilities, MOST_COMPARED_BASES } from './vulnerabilities.ts';

/**
 * The build method: a layer appended to the base, new labels on an image that has the layer, a container engine, or an
 * image that existed and was verified.
 */
export type BuildWay = 'Append' | 'Relabel' | 'Engine' | 'PreBuilt';

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
  transitionsFrom: z
    .array(
      z.object({
        config: z.string().max(253).describe('A rendered MachineConfig.'),
        base: z.string().max(447).describe('The base image, by digest.'),
      }),
    )
    .max(1000)
    .exactOptional()
    .describe("Shale's own: what nodes may run, for each of which the image's label lists a transition."),
});

export const BaseRecord = z
  .object({
    chainID: z
      .string()
      .max(71)
      .describe('The ChainID of its layers (OCI image-spec, config.md), which every image on this base has.'),
    image: DigestedPullspecSchema.describe('The record in the registry, by digest.'),
  })
  .describe(
    "Shale's own: the directories, links and accounts of the base image, which the builder read from its layers. A builder that starts reads the record instead.",
  );
/** Where the record of a base image's directories, links and accounts is. */
export type BaseRecord = z.infer<typeof BaseRecord>;

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
      .object({
        imageBuilderType: z.string(),
        job: RelatedObject.exactOptional().describe(
          "MCO's: the Job of a build of the type Job. Shale has none.",
        ),
      })
      .meta({
        'x-kubernetes-validations': [
          {
            rule: "self.imageBuilderType == 'Job' ? has(self.job) : !has(self.job)",
            message: 'job is required when imageBuilderType is Job, and forbidden otherwise',
          },
        ],
      })
      .exactOptional()
      .describe('The build method: Append, Relabel, Engine or PreBuilt.'),
    relatedObjects: z.array(RelatedObject).max(10).exactOptional().describe('Objects related to the build.'),
    buildStart: Timestamp.exactOptional().describe('When the build started.'),
    buildEnd: Timestamp.exactOptional().describe('When the build ended.'),
    digestedImagePushSpec: DigestedPullspecSchema.exactOptional().describe('The image, by digest.'),
    pushedImages: z
      .array(DigestedPullspecSchema)
      .max(100)
      .exactOptional()
      .describe(
        "Shale's own: images that the build has pushed or is about to push, by digest. They are deleted with the build, however it ended.",
      ),
    baseImage: z.string().max(447).exactOptional().describe("Shale's own: the base image by digest."),
    baseRecord: BaseRecord.exactOptional(),
    contents: BuildContents.exactOptional(),
    signingKey: z
      .string()
      .max(253)
      .exactOptional()
      .describe(
        "Shale's own: the entry of ConfigMap image-signing-keys with the public key of the key that signed the image.",
      ),
    instances: z
      .array(
        z.object({
          architecture: z.string().max(64).describe('The architecture as GOARCH, such as amd64.'),
          image: DigestedPullspecSchema,
          baseImage: z.string().max(447).describe('Its base image, by digest.'),
          engineImage: DigestedPullspecSchema.exactOptional(),
          baseRecord: BaseRecord.exactOptional(),
          contents: BuildContents.exactOptional(),
        }),
      )
      .max(10)
      .exactOptional()
      .describe(
        "Shale's own: the images in the index, one per architecture of the pool, each with its base image.",
      ),
    vulnerabilities: z
      .array(BaseVulnerabilities)
      .max(MOST_COMPARED_BASES)
      .exactOptional()
      .describe(
        "Shale's own: what the base image of the build brings and fixes in the place of those that nodes run, by the reports that are attached to them in the registry. The builder looks for them once the build has succeeded. Absent where nodes run the same base image.",
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

export const MachineOSBuilds = clusterKind<MachineOSBuild>(MCO_V1, 'MachineOSBuild');

/** MCO's conditions of a build; a build is final once one of the last three is True. */
export type BuildConditionType = 'Prepared' | 'Building' | 'Succeeded' | 'Failed' | 'Interrupted';

/**
 * What a condition of a build means when it is True, in Markdown; docs/reference/conditions.md is generated from it.
 */
export const buildConditions: Readonly<Record<BuildConditionType, string>> = {
  Prepared: 'the inputs of the build are complete and valid',
  Building: 'the image is being built, or the build is being retried',
  Succeeded: 'the image is in the registry. The build is final',
  Failed: 'the build failed for one of [these reasons](build-failures.md). The build is final',
  Interrupted: 'the build was stopped because it is no longer needed. The build is final',
};

/**
 * Why a build failed and what to do about it: reasons of the condition Failed of a MachineOSBuild and of its event.
 * docs/reference/build-failures.md is generated from them.
 */
export const buildFailures = {
  RegistryUnavailable: 'check the registry; the message contains its response',
  APIServerUnavailable: 'check the API server; the message contains its response',
  RegistryRefusedCredentials: 'fix the credentials in the Secret: the registry rejects them',
  RegistryRefused: 'fix what the registry’s response names: the repository or the permissions on it',
  SecretUnusable: 'create or fix the Secret that the message names',
  SigningKeyUnpublished:
    'nothing: the operator publishes the key in the ConfigMap `image-signing-keys`. If it does not, check the operator',
  SecretNotAllowed:
    'name a Secret in `buildSecrets` that was created for builds and has the label `shale.dev/usable-in-builds: "true"`',
  BaseImageArchitecture:
    'use a base image for every architecture of the pool’s nodes, or one pool per architecture',
  NoArchitecture: 'set `--architecture`: no node has reported its own',
  InvalidReference: 'fix the image reference in the message',
  InvalidConfig: 'fix the MachineConfig that the message names',
  NotLayerable: 'remove what the message names from the MachineConfig: no image can carry it',
  UnknownKernelType: 'use `default`, `realtime` or `64k-pages`',
  InvalidContainerfile: 'fix the line of the Containerfile that the message names',
  InvalidPackageName: 'fix the name of the package or extension',
  UnexpectedContent: 'check the registry or the engine: the content does not match its digest',
  PreBuiltImageRefused:
    'name another image in the annotation `machineconfiguration.openshift.io/pre-built-image` of the MachineOSConfig, or remove it to have one built: the message says what of the image is not what the builder would build',
  PoliciesChanged: 'nothing: a build for the new policies follows',
  NoEngine: 'configure a container engine for the builder (`--engine`): the image needs commands to run',
  EngineMisconfigured: 'fix the flags of the container engine',
  EngineUnavailable: 'check the container engine, or its pod, whose reason is in the message',
  EngineDiskFull: 'free disk space where the container engine keeps images',
  ArchiveTooLarge:
    'have the commands of the Containerfile leave less in the image: what the engine built is larger than the builder unpacks',
  EngineFailed: 'check the container engine; the message contains its response',
  EngineArchitecture: 'set up emulation for the architecture on the container engine’s host',
  EngineTimedOut: 'make the commands faster, or raise the limit (`--engine-minutes`)',
  ContainerfileFailed: 'fix the Containerfile; `status.logTail` has its output',
  NotOnBase: 'base the last stage of the Containerfile on `configs`',
  SecretInLayer: 'fix the Containerfile: a command copied a build secret into the image',
  SecretsNotSupported: 'use Podman: Docker’s API does not accept build secrets',
  MountsNotSupported: 'use a container engine that supports the mounts in the message',
  BuildError: 'read the message: the error is unexpected. The build is retried',
} as const;

export type BuildFailureReason = keyof typeof buildFailures;

/**
 * The images that a build has pushed or was about to push, and those of interrupted builds of the same name. They are
 * in the repository that the build pushes to: another one that a status names is not believed.
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
