import type { Logger } from 'pino';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import { annotations, labels, MACHINE_CONFIGURATION } from '../../api/names.ts';
import type { DigestedPullspec } from '../../api/references.ts';
import { changeField } from '../../cluster/about-change.ts';
import { parseReference } from '../../image/reference.ts';
import { createMirroredClient } from '../../image/registry/mirrored-client.ts';
import { SigningKeyError } from '../../image/signature/signing-key.ts';
import { sourceOf } from '../attest/pool-source.ts';
import { signingKeyReader } from '../attest/signing-key-secret.ts';
import { BuildFailure } from '../build-failure.ts';
import type { EngineAccessParts } from '../engine/engine-flags.ts';
import { readBuildSecrets } from '../engine/read-build-secrets.ts';
import type { BuildCaches } from '../observe.ts';
import { type RegistryAccessOptions, readRegistryAccess, SecretError } from '../secrets.ts';
import { buildForArchitectures } from './build-for-architectures.ts';
import type { Step } from './build-trace.ts';
import { knownStates } from './known-states.ts';
import { renderedRegistries } from './rendered-registries.ts';
import type { BuildJob, BuildResult } from './running-builds.ts';

export interface ImageMakerOptions extends RegistryAccessOptions {
  readonly caches: BuildCaches;
  /** Of Shale, for the image's labels. */
  readonly version: string;
  /** RFC 3339; the image's time, part of what is hashed. */
  readonly created: string;
  /** Whether provenance is attached to images. */
  readonly attest?: boolean;
  /** Name of the Secret with the key that signs images; without it they are not signed. */
  readonly signingKeySecret?: string;
  readonly engine: EngineAccessParts;
  readonly log: Logger;
}

/** @returns what makes and pushes the image of a build, out of what the cluster says at that moment. */
export function imageMaker(
  options: ImageMakerOptions,
): (job: BuildJob, step: Step, signal: AbortSignal) => Promise<BuildResult> {
  const { caches, attest = false, signingKeySecret } = options;
  const readKey = signingKeySecret === undefined ? undefined : signingKeyReader(options, signingKeySecret);
  return async ({ build, machineOSConfig, rendered, baseImage, architectures }, step, signal) => {
    const { baseImagePullSecret, renderedImagePushSecret } = machineOSConfig.spec;
    const { policies, policyDigest } = policiesInForce(caches, build.spec.policyDigest);
    const pool = machineOSConfig.spec.machineConfigPool.name;
    const log = options.log.child(changeField(rendered.metadata.name));
    const builds = caches.builds
      .list()
      .filter(({ metadata }) => metadata.labels?.[labels.targetPool] === pool);
    // The push Secret counts where both are for one registry: mounting the base's layers is part of the push.
    const secrets = [baseImagePullSecret?.name, renderedImagePushSecret?.name];
    const access = await readRegistryAccess(options, secrets, signal).catch(secretFailure);
    const conf = renderedRegistries(rendered);
    // Read before the image is made: one that can't be signed is not pushed.
    const key = await readKey?.(signal).catch(secretFailure);
    const seal = { attest, ...(key === undefined ? {} : { key }) };
    return buildForArchitectures(
      createMirroredClient(access, { conf, own: parseReference(build.spec.renderedImagePushSpec) }),
      {
        pool,
        rendered,
        baseImage,
        pushSpec: build.spec.renderedImagePushSpec,
        policies,
        policyDigest,
        ...previousOf(machineOSConfig),
        froms: knownStates(pool, caches.nodes.list(), builds, (name) => caches.machineConfigs.get(name)),
        architectures,
        version: options.version,
        created: options.created,
        source: sourceOf(caches.pools.get(pool)),
        seal,
        step,
        spec: machineOSConfig.spec,
        rebuild: machineOSConfig.metadata.annotations?.[annotations.rebuild] ?? '',
        readSecrets: (names) => readBuildSecrets(options, names, signal).catch(secretFailure),
      },
      {
        ...options.engine,
        onLine: (line) => log.info({ build: build.metadata.name, line }, 'engine'),
      },
      signal,
    );
  };
}

/** The image that the MachineOSConfig was given last. */
function previousOf({ status }: MachineOSConfig): { previousImage?: DigestedPullspec } {
  const image = status?.currentImagePullSpec;
  // Digested by the schema of the status.
  return image === undefined ? {} : { previousImage: image as DigestedPullspec };
}

/** A label under policies that are not those it names would tell nodes something wrong. */
function policiesInForce({ machineConfigurations }: BuildCaches, wanted: string | undefined) {
  const status = machineConfigurations.get(MACHINE_CONFIGURATION)?.status;
  const policies = status?.nodeDisruptionPolicyStatus?.clusterPolicies;
  if (policies === undefined || status?.policyDigest === undefined || status.policyDigest !== wanted) {
    throw new BuildFailure(
      'PoliciesChanged',
      `the disruption policies in force are no longer those of this build (${wanted ?? 'none'})`,
      { temporary: true },
    );
  }
  return { policies, policyDigest: status.policyDigest };
}

/** It may be on its way: Secrets come from other hands than MachineOSConfigs. */
function secretFailure(error: unknown): never {
  if (error instanceof SecretError || error instanceof SigningKeyError) {
    throw new BuildFailure('SecretUnusable', error.message, { cause: error, temporary: true });
  }
  throw error;
}
