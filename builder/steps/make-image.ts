import type { Logger } from 'pino';
import { hasEnded } from '../../api/build-outcome.ts';
import type { MachineConfig } from '../../api/machine-config.ts';
import { type MachineOSBuild, MachineOSBuilds } from '../../api/machine-os-build.ts';
import { MACHINE_CONFIGURATION } from '../../api/names.ts';
import { preBuiltImageOf } from '../../api/pre-built-image.ts';
import type { DigestedPullspec } from '../../api/references.ts';
import { isNotFound } from '../../cluster/api-client.ts';
import { changeField } from '../../cluster/events.ts';
import { updateStatus } from '../../cluster/update-object.ts';
import { type PoliciesInForce, policiesOfPool } from '../../disruption/pool-policies.ts';
import { formatNodeState } from '../../disruption/transitions.ts';
import { BaseTrees } from '../../image/base/base-trees.ts';
import { formatReference, parseReference } from '../../image/reference.ts';
import { createMirroredClient } from '../../image/registry/mirrored-client.ts';
import { forgedMessage, isForged } from '../../machineconfig/rendered-name.ts';
import { rebuildOf } from '../../predict/image/requested-image.ts';
import { Seal } from '../attest/seal-image.ts';
import { SigningKeySecret } from '../attest/signing-key-secret.ts';
import { BuildFailure } from '../build-failure.ts';
import { readBuildSecrets, reservedSecrets } from '../build-secrets.ts';
import type { EngineAccessParts } from '../engine/engine-flags.ts';
import { recordedEngineImages } from '../engine/find-engine-image.ts';
import { sourceOf } from '../layer/build-facts.ts';
import type { BuildCaches } from '../observe.ts';
import { renderedRegistries } from '../rendered-registries.ts';
import { type RegistryAccessOptions, readRegistryAccess, SecretError } from '../secrets.ts';
import { type BuildResult, withPushedImage } from '../status.ts';
import { byBase } from './base-architectures.ts';
import { buildForArchitectures } from './build-image.ts';
import type { StepRunner } from './build-trace.ts';
import { type KnownState, knownStates } from './known-states.ts';
import { recordingPushes } from './recorded-pushes.ts';
import type { BuildJob } from './running-builds.ts';
import { takeImage } from './take-image.ts';
import { recordedBases } from './tree-of-base.ts';

export interface ImageMakerOptions extends RegistryAccessOptions {
  readonly caches: BuildCaches;
  /** Of Shale, for the image's labels. */
  readonly version: string;
  /** RFC 3339; the image's time, part of what is hashed. */
  readonly created: string;
  /** Whether provenance is attached to images. */
  readonly attest?: boolean;
  /** Name of the Secret with the key that signs images; without it they are not signed. */
  readonly signingKeySecret?: string | undefined;
  readonly engine: EngineAccessParts;
  readonly log: Logger;
}

/** Builds and pushes images from the cluster's objects as they are when a build starts. */
export class ImageMaker {
  readonly #options: ImageMakerOptions;
  readonly #signingKey: Pick<SigningKeySecret, 'published'> | undefined;
  readonly #baseTrees: BaseTrees;

  constructor(options: ImageMakerOptions) {
    const { client, namespace, signingKeySecret: name } = options;
    this.#options = options;
    this.#signingKey = name === undefined ? undefined : new SigningKeySecret(client, { namespace, name });
    this.#baseTrees = new BaseTrees({
      onReading: ({ reference }, layers, bytes) =>
        options.log.info(
          { base: formatReference(reference), layers, bytes },
          'reading the layers of a base image, once',
        ),
      onUnrecorded: ({ reference }, err) =>
        options.log.warn(
          { base: formatReference(reference), err },
          'record of a base image not pushed; another builder reads the layers again',
        ),
    });
  }

  /** @throws BuildFailure that says whether a retry may help. */
  async make(job: BuildJob, step: StepRunner, signal: AbortSignal): Promise<BuildResult> {
    const { build, machineOSConfig, rendered, baseImage, architectures, sameAs } = job;
    const { caches, attest = false, engine, version, created } = this.#options;
    // The operator restores it.
    if (isForged(rendered))
      throw new BuildFailure('InvalidConfig', forgedMessage(rendered.metadata.name), { temporary: true });
    const { baseImagePullSecret, renderedImagePushSecret } = machineOSConfig.spec;
    const inForce = policiesInForce(caches, build.spec);
    const pool = machineOSConfig.spec.machineConfigPool.name;
    const log = this.#options.log.child(changeField(rendered.metadata.name));
    const builds = caches.builds
      .list()
      .filter(({ spec }) => spec.machineOSConfig.name === machineOSConfig.metadata.name);
    // The push Secret wins where both are for one registry: mounting the base's layers is part of the push.
    const secrets = { pool, names: [baseImagePullSecret?.name, renderedImagePushSecret?.name] };
    const access = await readRegistryAccess(this.#options, secrets, signal).catch(secretFailure);
    const conf = renderedRegistries(rendered);
    // Read before the image is built: an image that can't be signed is not pushed.
    const seal = new Seal({ key: await this.#signingKey?.published(signal), attest });
    const pushSpec = build.spec.renderedImagePushSpec;
    const client = recordingPushes(
      createMirroredClient(access, { conf, own: parseReference(pushSpec) }),
      pushSpec,
      (image) => this.#recordPush(build, image, signal),
    );
    const { built, left } = await byBase(client, { baseImage, architectures }, signal);
    const previous = machineOSConfig.status?.currentImagePullSpec;
    const known = {
      baseTrees: this.#baseTrees,
      baseRecords: recordedBases(builds, pushSpec),
      previousBuild: builds.find(
        ({ status }) => previous !== undefined && status?.digestedImagePushSpec === previous,
      ),
    };
    const how = { ...known, architectures: built, seal, step };
    const sealed = (result: BuildResult): BuildResult => ({
      ...result,
      signingKey: Object.keys(seal.publicKeys)[0],
      ...(left.length === 0 ? {} : { summary: `${result.summary}; ${noneFor(left)}` }),
    });
    const preBuiltImage = preBuiltImageOf(build);
    if (preBuiltImage !== undefined) {
      const configs = (name: string) => caches.machineConfigs.get(name);
      const requested = { machineOSConfig, rendered, baseImage, pushSpec, inForce, configs };
      return sealed(await takeImage(client, { preBuiltImage, ...requested, ...how }, signal));
    }
    const requested = {
      pool,
      rendered,
      sources: sourcesOf(caches, pool, rendered),
      baseImage,
      pushSpec,
      // A digest by the schema of the status.
      previousImage: previous as DigestedPullspec | undefined,
    };
    const labels = {
      ...inForce,
      version,
      created,
      froms: this.#froms(build, pool, builds),
      // The pool's annotations are about what it was rolled back from.
      source: sameAs === undefined ? sourceOf(caches.pools.get(pool)) : undefined,
    };
    const commands = {
      spec: machineOSConfig.spec,
      sameAs,
      rebuild: rebuildOf(machineOSConfig) ?? '',
      readSecrets: (names: readonly string[]) =>
        readBuildSecrets(this.#options, { pool, names, reserved: this.#reservedSecrets() }, signal).catch(
          secretFailure,
        ),
    };
    const result = await buildForArchitectures(
      client,
      { ...requested, ...labels, ...commands, ...how },
      {
        ...engine,
        build: { name: build.metadata.name, uid: build.metadata.uid ?? '' },
        recorded: recordedEngineImages(builds),
        onLine: (line) => log.info({ build: build.metadata.name, line }, 'engine'),
      },
      signal,
    );
    return sealed(result);
  }

  /** Nobody would delete the image of a build that has ended or was deleted. */
  async #recordPush(build: MachineOSBuild, image: DigestedPullspec, signal: AbortSignal): Promise<void> {
    const { name } = build.metadata;
    const refuse = (cause?: unknown): never => {
      const message = `MachineOSBuild ${name} is over or was deleted, so ${image} is not pushed`;
      throw new BuildFailure('BuildError', message, { cause });
    };
    const compute = (current: MachineOSBuild) =>
      hasEnded(current) ? refuse() : withPushedImage(current.status, image);
    await updateStatus(this.#options.client, MachineOSBuilds, build, compute, { signal }).catch(
      (error: unknown) => {
        if (isNotFound(error)) refuse(error);
        throw error;
      },
    );
  }

  /** The transitions that the build must list; an older builder has not recorded them. */
  #froms({ spec }: MachineOSBuild, pool: string, builds: readonly MachineOSBuild[]): readonly KnownState[] {
    const { caches } = this.#options;
    const known = knownStates(pool, caches.nodes.list(), builds, (name) => caches.machineConfigs.get(name));
    const { transitionsFrom } = spec;
    if (transitionsFrom === undefined) return known;
    const requested = new Set(transitionsFrom.map(formatNodeState));
    return known.filter(({ config, base }) =>
      requested.has(formatNodeState({ config: config.metadata.name, base })),
    );
  }

  #reservedSecrets(): ReadonlySet<string> {
    const { caches, signingKeySecret } = this.#options;
    return reservedSecrets(signingKeySecret, caches.machineOSConfigs.list(), caches.builds.list());
  }
}

function noneFor(architectures: readonly string[]): string {
  const platforms = architectures.map((architecture) => `linux/${architecture}`).join(' and ');
  return `nothing for ${platforms}: the base image has none`;
}

/** A label must state transitions under the policies that it names, or nodes would take the wrong actions. */
function policiesInForce(
  { machineConfigurations, machineOSConfigs }: BuildCaches,
  { machineOSConfig, policyDigest: requested }: MachineOSBuild['spec'],
): PoliciesInForce {
  const status = machineConfigurations.get(MACHINE_CONFIGURATION)?.status;
  const pool = machineOSConfigs.get(machineOSConfig.name)?.spec.machineConfigPool.name;
  const inForce = policiesOfPool(status, pool ?? machineOSConfig.name);
  if (inForce === undefined || inForce.policyDigest !== requested) {
    throw new BuildFailure(
      'PoliciesChanged',
      `The disruption policies in force are no longer those of this build (${requested ?? 'none'})`,
      { temporary: true },
    );
  }
  return inForce;
}

/** @returns the MachineConfigs that a rendered config was made of; none of one that is no longer the pool's target. */
function sourcesOf(
  { pools, machineConfigs }: BuildCaches,
  pool: string,
  { metadata }: MachineConfig,
): readonly MachineConfig[] {
  const { name, source = [] } = pools.get(pool)?.spec.configuration ?? {};
  return name === metadata.name ? source.flatMap((each) => machineConfigs.get(each.name ?? '') ?? []) : [];
}

/** Temporary: the Secrets of a MachineOSConfig may be created a little later. */
function secretFailure(error: unknown): never {
  if (error instanceof SecretError) {
    throw new BuildFailure('SecretUnusable', error.message, { cause: error, temporary: true });
  }
  throw error;
}
