import { z } from 'zod';
import { ReportedSteps } from './failing-step.ts';
import {
  Conditions,
  clusterKind,
  type KubernetesObject,
  MCO_V1,
  NameReference,
  ObservedGeneration,
  RelatedObject,
} from './object.ts';
import { DigestedPullspecSchema, repositoryOf, TaggedPullspecSchema } from './references.ts';

export const MachineOSConfigSpec = z.object({
  machineConfigPool: NameReference.describe(
    'The pool that the image is built for; the object has the same name.',
  ),
  imageBuilder: z
    .object({ imageBuilderType: z.enum(['Job']) })
    .exactOptional()
    .describe("MCO's field; accepted and ignored: Shale appends a layer unless commands have to run."),
  baseImagePullSecret: NameReference.exactOptional().describe(
    'Secret with the credentials to pull the base image.',
  ),
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
    .describe("Shale's own: the base image, if no MachineConfig of the pool sets osImageURL."),
  containerFile: z
    .array(
      z.object({
        containerfileArch: z
          .enum(['ARM64', 'AMD64', 'PPC64LE', 'S390X', 'NoArch'])
          .default('NoArch')
          .describe(
            'The architecture of the Containerfile; NoArch: every architecture without one of its own.',
          ),
        content: z.string().max(4096).describe('Content of the Containerfile.'),
      }),
    )
    .max(4)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['containerfileArch'] })
    .exactOptional()
    .describe('Containerfiles for the image, at most one per architecture. Requires a container engine.'),
  packages: z
    .array(
      z
        .string()
        .max(255)
        .regex(/^[A-Za-z0-9][A-Za-z0-9+._:~=-]*$/, {
          error: 'the name of a package, perhaps with a version',
        }),
    )
    .max(200)
    .exactOptional()
    .describe("Shale's own: packages to install in the image. Requires a container engine."),
  buildArguments: z
    .array(
      z.object({
        name: z
          .string()
          .max(255)
          .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, { error: 'letters, digits and _, not a digit first' })
          .describe('Name of the ARG.'),
        value: z.string().max(4096).describe('Value of the ARG.'),
      }),
    )
    .max(50)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] })
    .exactOptional()
    .describe(
      "Shale's own: values of the Containerfile's ARGs. They are visible in the image's history, so never use them for secrets.",
    ),
  buildSecrets: z
    .array(NameReference)
    .max(20)
    .exactOptional()
    .describe(
      "Shale's own: Secrets in the builder's namespace, with the label shale.dev/usable-in-builds: true, that commands may read at /run/secrets/<Secret>/<key>, with RUN --mount=type=secret,id=<Secret>/<key>. They are not part of any layer.",
    ),
});
export type MachineOSConfigSpec = z.infer<typeof MachineOSConfigSpec>;

export const MachineOSConfigStatus = z.object({
  conditions: Conditions.exactOptional(),
  observedGeneration: ObservedGeneration.exactOptional(),
  currentImagePullSpec: DigestedPullspecSchema.exactOptional().describe('The last image built, by digest.'),
  publishedImage: z
    .object({ tag: TaggedPullspecSchema, image: DigestedPullspecSchema })
    .exactOptional()
    .describe(
      "Shale's own: the tag that names the image for new nodes (status.bootImage of the pool), and what the builder last moved it to.",
    ),
  machineOSBuild: RelatedObject.exactOptional().describe('The current or the last MachineOSBuild.'),
  failingSteps: ReportedSteps.exactOptional().describe(
    "Shale's own: what the builder can't do for the pool, for longer than such failures last by themselves. It tries again. Absent: nothing fails.",
  ),
});

/** The request for a pool's layered image. */
export interface MachineOSConfig extends KubernetesObject {
  readonly spec: MachineOSConfigSpec;
  readonly status?: z.infer<typeof MachineOSConfigStatus>;
}

export const MachineOSConfigs = clusterKind<MachineOSConfig>(MCO_V1, 'MachineOSConfig');

/** Shale's own conditions of a MachineOSConfig: MCO has none. */
export type MachineOSConfigConditionType = 'BuildWaiting' | 'BootImagePublished' | 'StepsFailing';

/** Why no build of a MachineOSConfig is created, as the reason of BuildWaiting. */
export type BuildWaitingReason =
  | 'PoolMissing'
  | 'RepositoryTaken'
  | 'RenderedConfigMissing'
  | 'PoliciesUnknown'
  | 'BaseImageMissing'
  | 'BaseImageUnknown';

/**
 * What a condition of a MachineOSConfig means when it is True, in Markdown; docs/reference/conditions.md is generated
 * from it.
 */
export const machineOSConfigConditions: Readonly<Record<MachineOSConfigConditionType, string>> = {
  BuildWaiting:
    'no build can be created for the pool’s rendered config; the message names what is missing: a base image, or its tag in the registry, the rendered config, or the disruption policies, or that the repository belongs to another pool. The pool’s conditions BuildPending and Updating repeat it',
  StepsFailing:
    'the Machine OS Builder can’t do what it has to do, for longer than such failures last by themselves; the message has the API server’s own words. A MachineOSConfig for which nothing fails has no such condition',
  BootImagePublished:
    'the tag for new nodes names the image in `status.bootImage` of the pool. If False, the message says why the tag was not moved; the builder retries',
};

/** Same rule as MCO's: one MachineOSConfig per pool, under the pool's name. */
export const machineOSConfigRules = [
  {
    rule: 'self.metadata.name == self.spec.machineConfigPool.name',
    message:
      'MachineOSConfig name must match the referenced MachineConfigPool name; can only have one MachineOSConfig per MachineConfigPool',
  },
];

/**
 * The tag under which the image for a pool's new nodes is published. It stays the same, so that installers and
 * templates of machines can name it.
 *
 * @returns `REPOSITORY:current` in a repository of the pool's own name, and `REPOSITORY:current-POOL` in any other,
 *   which pools may share.
 */
export function bootImageTag({ spec }: Pick<MachineOSConfig, 'spec'>): string {
  const { machineConfigPool, renderedImagePushSpec } = spec;
  const repository = repositoryOf(renderedImagePushSpec);
  const isOwn = repository.endsWith(`/${machineConfigPool.name}`);
  return `${repository}:${isOwn ? 'current' : `current-${machineConfigPool.name}`}`;
}
