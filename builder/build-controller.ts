import type { Logger } from 'pino';
import { hasEnded } from '../api/build-outcome.ts';
import { errorMessage } from '../api/error-message.ts';
import { isKeyPublished } from '../api/image-signing.ts';
import { type ConfigMap, ConfigMaps } from '../api/kubernetes.ts';
import { labelsWithNames } from '../api/label-selector.ts';
import { type MachineOSBuild, MachineOSBuilds, pushedImages } from '../api/machine-os-build.ts';
import {
  type MachineOSConfig,
  type MachineOSConfigConditionType,
  MachineOSConfigs,
} from '../api/machine-os-config.ts';
import { annotations, labels, MACHINE_CONFIGURATION, SIGNING_KEYS_CONFIG_MAP } from '../api/names.ts';
import type { Condition, NewObject } from '../api/object.ts';
import { present } from '../api/present.ts';
import type { DigestedPullspec } from '../api/references.ts';
import { otherOwner } from '../api/repository-owner.ts';
import { isAlreadyExists } from '../cluster/api-client.ts';
import { done, type Result, requeueAfter } from '../cluster/controller.ts';
import { aboutChange, changeField, type EventRecorder } from '../cluster/events.ts';
import {
  type FailingStep,
  type FailingSteps,
  formatFailing,
  reportedSteps,
} from '../cluster/failing-steps.ts';
import { observedAt, type Readiness, setReadiness } from '../cluster/readiness.ts';
import { conditionIsTrue, setCondition, updateStatus } from '../cluster/update-object.ts';
import { unlistedConfigs } from '../disruption/label-coverage.ts';
import { type PoliciesInForce, policiesOfPool } from '../disruption/pool-policies.ts';
import { createMirroredClient } from '../image/registry/mirrored-client.ts';
import { requestedBase } from '../predict/image/image-inputs.ts';
import { BUILD_NAME_VERSION } from '../predict/image/requested-image.ts';
import { type BuildDecision, type BuildObservation, decideBuild, pushSpecOf } from './decide.ts';
import { decideRelabel, type RelabelBuild } from './decide-relabel.ts';
import { BaseImages, type BuildCaches, isMovable, renderedConfigOf } from './observe.ts';
import { renderedRegistries } from './rendered-registries.ts';
import { type RegistryAccessOptions, readRegistryAccess } from './secrets.ts';
import { type BuildPhase, buildReadiness, buildStatus, waitingReadiness } from './status.ts';
import { VulnerabilityRecorder } from './steps/compare-vulnerabilities.ts';
import { knownStates } from './steps/known-states.ts';
import { BootImagePublisher } from './steps/publish-boot-image.ts';
import type { RunningBuilds } from './steps/running-builds.ts';

export interface BuildControllerOptions extends RegistryAccessOptions {
  readonly events: EventRecorder;
  readonly log: Logger;
  readonly caches: BuildCaches;
  readonly running: Pick<RunningBuilds, 'start' | 'abort' | 'names' | 'writeEnds'>;
  /** What the builder can't do, by MachineOSConfig. */
  readonly failing: Pick<FailingSteps, 'reported'>;
  /** For pools whose nodes have not reported theirs; a GOARCH value. */
  readonly architecture: string;
  /** Whether this builder can run commands. */
  readonly hasEngine: boolean;
  readonly signal: AbortSignal;
  /** ms between look-ups of a base image named by tag. */
  readonly baseCheckMs: number;
  readonly now: () => Date;
}

type RequestedBuild = Extract<BuildDecision, { kind: 'build' }> & Partial<Pick<RelabelBuild, 'sameAs'>>;

/** The controller of MachineOSConfigs: makes the builds of each what decideBuild returns. */
export class BuildController {
  readonly #options: BuildControllerOptions;
  readonly #bases: BaseImages;
  readonly #bootImages: BootImagePublisher;
  readonly #vulnerabilities: VulnerabilityRecorder;

  constructor(options: BuildControllerOptions) {
    this.#options = options;
    this.#bootImages = new BootImagePublisher(options);
    this.#vulnerabilities = new VulnerabilityRecorder(options);
    this.#bases = new BaseImages({
      freshMs: options.baseCheckMs,
      now: () => performance.now(),
      onStale: (image, error) =>
        options.log.warn({ image, err: error }, 'base image could not be looked up again'),
    });
  }

  /** @returns the fields that identify a MachineOSConfig's change in the log. */
  fields(name: string): ReturnType<typeof changeField> {
    const { caches } = this.#options;
    const pool = caches.machineOSConfigs.get(name)?.spec.machineConfigPool.name ?? '';
    return changeField(renderedConfigOf(caches, pool));
  }

  async reconcile(name: string): Promise<Result> {
    const { caches, running } = this.#options;
    // Before what fails perhaps.
    await this.#reportFailing(caches.machineOSConfigs.get(name));
    await running.writeEnds(name);
    const config = caches.machineOSConfigs.get(name);
    // Neither waits for the other: the next image may lack something, and the registry may refuse the tag.
    const pool = caches.pools.get(config?.spec.machineConfigPool.name ?? '');
    const owner = config && this.#otherOwner(config);
    const isOwn = config !== undefined && owner === undefined;
    const unpublished = isOwn ? await this.#bootImages.publish(config, pool) : undefined;
    const result = await this.#keepBuild(name, config, owner);
    if (unpublished !== undefined) throw unpublished.error;
    return result;
  }

  /** @returns what can't be done for a MachineOSConfig, for long enough to be reported. */
  #failuresOf({ metadata }: MachineOSConfig): readonly FailingStep[] {
    return this.#options.failing.reported().filter(({ object }) => object.metadata.name === metadata.name);
  }

  async #reportFailing(config: MachineOSConfig | undefined): Promise<void> {
    const { client, now } = this.#options;
    const type: MachineOSConfigConditionType = 'StepsFailing';
    if (config === undefined) return;
    const failing = this.#failuresOf(config);
    const message = formatFailures(failing);
    const wasFailing = conditionIsTrue(config.status?.conditions, type);
    if (failing.length === 0 && !wasFailing) return;
    const { generation } = config.metadata;
    await updateStatus(
      client,
      MachineOSConfigs,
      config,
      ({ status: { failingSteps: _, ...status } = {} }) => {
        const before = status.conditions ?? [];
        if (failing.length === 0)
          return { ...status, conditions: before.filter((each) => each.type !== type) };
        const condition = {
          type,
          status: 'True',
          reason: type,
          message: message.slice(0, LONGEST_WAIT),
        } as const;
        const conditions = setCondition(before, { ...condition, observedGeneration: generation }, now());
        const readiness = { kind: 'stalled', reason: type, message } as const;
        return {
          ...status,
          conditions: setReadiness(conditions, readiness, generation, now()),
          failingSteps: reportedSteps(failing),
        };
      },
    );
  }

  /** What fails needs somebody, however far the build is. */
  #readiness(config: MachineOSConfig, otherwise: Readiness): Readiness {
    const failing = this.#failuresOf(config);
    return failing.length === 0
      ? otherwise
      : { kind: 'stalled', reason: 'StepsFailing', message: formatFailures(failing) };
  }

  /** The builder's own record is its builds: it reads no PoolRevisions. */
  #otherOwner(config: MachineOSConfig): string | undefined {
    const { machineOSConfigs, builds } = this.#options.caches;
    return otherOwner(config, machineOSConfigs.list(), () =>
      builds.list().map(({ metadata, spec }) => ({
        pool: spec.machineOSConfig.name,
        image: spec.renderedImagePushSpec,
        since: metadata.creationTimestamp ?? '',
      })),
    );
  }

  /** @param repositoryOwner another pool, to whom the repository belongs. */
  async #keepBuild(
    name: string,
    config: MachineOSConfig | undefined,
    repositoryOwner: string | undefined,
  ): Promise<Result> {
    const { caches, running } = this.#options;
    const builds = caches.builds.list().filter((build) => build.spec.machineOSConfig.name === name);
    if (config === undefined) {
      // Nodes may still run the images of its builds; the operator prunes them when none does.
      for (const build of builds)
        if (!hasEnded(build)) await this.#interrupt(build, `MachineOSConfig ${name} was deleted`);
      return done;
    }
    const pool = caches.pools.get(config.spec.machineConfigPool.name);
    const rendered = caches.machineConfigs.get(pool?.spec.configuration?.name ?? '');
    const { policies, policyDigest } = this.#policiesOf(config) ?? {};
    const observed = {
      machineOSConfig: config,
      pool,
      repositoryOwner,
      policyDigest,
      ownArchitecture: this.#options.architecture,
      builds,
      running: running.names(),
      hasEngine: this.#options.hasEngine,
      ...this.#labelling(config, builds, { policies, policyDigest }),
      isDistrusted: await this.#distrust(builds),
    };
    // Before all else: a rollback waits for it, and needs nothing that the next image may lack.
    const relabel =
      repositoryOwner === undefined
        ? decideRelabel({ ...observed, configs: (each) => caches.machineConfigs.get(each) })
        : undefined;
    if (relabel !== undefined) await this.#carryOut(config, relabel);
    const requested = requestedBase(config, rendered);
    const baseImage = requested === undefined ? undefined : await this.#resolveBase(config, requested);
    const decision = decideBuild({ ...observed, rendered, baseImage });
    if (decision.kind === 'wait') {
      const { log, events } = aboutChange(this.#options, pool?.spec.configuration?.name);
      log.info({ pool: config.spec.machineConfigPool.name, why: decision.why }, 'no build yet');
      events.normal(config, 'BuildWaiting', decision.why);
      await this.#writeWaiting(config, decision);
      return done;
    }
    for (const older of decision.interrupt.filter(({ metadata }) => metadata.name !== relabel?.name)) {
      await this.#interrupt(older, `${decision.name} with newer inputs replaces it`);
    }
    await this.#carryOut(config, decision);
    await this.#pointTo(config, decision);
    const lookAgain = decision.build && (await this.#vulnerabilities.record(config, decision.build, pool));
    // A tag can be moved to another image, and no watch reports it; nor does one report what is attached to an image.
    const movable = requested !== undefined && isMovable(requested) ? this.#options.baseCheckMs : undefined;
    const again = [lookAgain, movable].filter((ms) => ms !== undefined);
    return again.length === 0 ? done : requeueAfter(Math.min(...again));
  }

  #policiesOf({ spec }: MachineOSConfig): PoliciesInForce | undefined {
    const { status } = this.#options.caches.machineConfigurations.get(MACHINE_CONFIGURATION) ?? {};
    return policiesOfPool(status, spec.machineConfigPool.name);
  }

  /** What the label of an image must list, and whether that of a build lists it. */
  #labelling(
    { spec }: MachineOSConfig,
    builds: readonly MachineOSBuild[],
    { policies, policyDigest }: { [Of in keyof PoliciesInForce]: PoliciesInForce[Of] | undefined },
  ): Pick<BuildObservation, 'states' | 'fallsShort'> {
    const { caches } = this.#options;
    const pool = spec.machineConfigPool.name;
    const configs = (name: string) => caches.machineConfigs.get(name);
    const nodes = caches.nodes.list().filter(({ spec: { pool: of } }) => of.name === pool);
    const states = knownStates(pool, nodes, builds, configs);
    return {
      states: states.map(({ config, base }) => ({ config: config.metadata.name, base })),
      fallsShort: (build) =>
        policies !== undefined &&
        unlistedConfigs({ build, nodes, configs, policies, policyDigest }).length > 0,
    };
  }

  /**
   * Which successful builds no node accepts any more. The cache may not show a key yet that was published before it
   * signed, and a build must not follow from that; the API server is asked only if a key seems to be missing.
   */
  async #distrust(builds: readonly MachineOSBuild[]): Promise<BuildObservation['isDistrusted']> {
    const { caches, client, namespace, signal } = this.#options;
    const among =
      (keys: ConfigMap | undefined): BuildObservation['isDistrusted'] =>
      ({ status }) =>
        // No data means that signing is disabled.
        status?.signingKey !== undefined &&
        Object.keys(keys?.data ?? {}).length > 0 &&
        !isKeyPublished(keys?.data, status.signingKey);
    const cached = among(caches.signingKeys.get(SIGNING_KEYS_CONFIG_MAP, namespace));
    if (!builds.some(cached)) return cached;
    return among(await client.find(ConfigMaps, SIGNING_KEYS_CONFIG_MAP, { namespace, signal }));
  }

  /** @throws the error of the look-up; the controller retries. */
  async #resolveBase(config: MachineOSConfig, requested: string): Promise<string> {
    const { caches, signal } = this.#options;
    const { baseImagePullSecret, machineConfigPool } = config.spec;
    const name = renderedConfigOf(caches, machineConfigPool.name);
    try {
      return await this.#bases.resolve(requested, async (reference) => {
        const access = await readRegistryAccess(
          this.#options,
          { pool: machineConfigPool.name, names: [baseImagePullSecret?.name] },
          signal,
        );
        const conf = renderedRegistries(caches.machineConfigs.get(name ?? ''));
        return (await createMirroredClient(access, { conf }).getManifest(reference, signal)).digest;
      });
    } catch (error) {
      const why = errorMessage(error);
      const { events } = aboutChange(this.#options, name);
      const message = `Base image ${requested} can't be looked up: ${why}`;
      events.warning(config, 'BaseImageUnknown', message);
      if (!signal.aborted) await this.#writeWaiting(config, { reason: 'BaseImageUnknown', why: message });
      throw error;
    }
  }

  /** Where the operator finds why the pool has no build: events expire and can't be awaited. */
  async #writeWaiting(
    config: MachineOSConfig,
    { reason, why }: Omit<Extract<BuildDecision, { kind: 'wait' }>, 'kind'>,
  ): Promise<void> {
    const { client, now } = this.#options;
    const { generation } = config.metadata;
    const readiness = this.#readiness(config, waitingReadiness({ reason, why }));
    await updateStatus(client, MachineOSConfigs, config, ({ status }) => {
      const waiting = withWaiting(status, { status: 'True', reason, message: why }, now());
      // Not status.observedGeneration: that is of the spec that machineOSBuild was created for (buildToTakeOver).
      return { ...waiting, conditions: setReadiness(waiting.conditions, readiness, generation, now()) };
    });
  }

  async #interrupt(build: MachineOSBuild, why: string): Promise<void> {
    const { client, running, now } = this.#options;
    await running.abort(build.metadata.name);
    const phase: BuildPhase = { kind: 'interrupted', message: why };
    await updateStatus(client, MachineOSBuilds, build, (current) =>
      hasEnded(current)
        ? current.status
        : buildStatus(current.status, phase, now().toISOString(), current.metadata.generation),
    );
    const { events } = aboutChange(this.#options, build.spec.machineConfig.name);
    events.normal(build, 'BuildInterrupted', why);
  }

  async #carryOut(config: MachineOSConfig, requested: RequestedBuild): Promise<void> {
    switch (requested.next) {
      case 'none':
        return;
      case 'recreate':
        await this.#recreate(config, requested);
        return;
      case 'create':
        this.#start(config, requested, await this.#create(config, requested));
        return;
      case 'start':
        this.#start(config, requested, await this.#unfinished(requested.name));
    }
  }

  /** The images of the old build stay on record. The cache may not show its last one yet. */
  async #recreate(config: MachineOSConfig, requested: RequestedBuild): Promise<void> {
    const { client } = this.#options;
    const old = await client.find(MachineOSBuilds, requested.name);
    await client.delete(MachineOSBuilds, requested.name);
    const earlier = old === undefined ? [] : pushedImages(old);
    this.#start(config, requested, await this.#create(config, requested, earlier));
  }

  /**
   * @returns the build as it is, undefined if it is over or gone: the cache may not show yet what was written to it.
   */
  async #unfinished(name: string): Promise<MachineOSBuild | undefined> {
    const build = await this.#options.client.find(MachineOSBuilds, name);
    return build === undefined || hasEnded(build) ? undefined : build;
  }

  async #create(
    config: MachineOSConfig,
    requested: RequestedBuild,
    earlier: readonly DigestedPullspec[] = [],
  ): Promise<MachineOSBuild | undefined> {
    try {
      return await this.#options.client.create(MachineOSBuilds, newBuild(config, requested, earlier));
    } catch (error) {
      // Created by an earlier pass and not in the cache yet: its watch event enqueues this key again.
      if (isAlreadyExists(error)) return undefined;
      throw error;
    }
  }

  #start(config: MachineOSConfig, requested: RequestedBuild, build: MachineOSBuild | undefined): void {
    const rendered = this.#options.caches.machineConfigs.get(requested.renderedConfig);
    if (build === undefined || rendered === undefined) return;
    aboutChange(this.#options, requested.renderedConfig).log.info(
      {
        pool: config.spec.machineConfigPool.name,
        build: requested.name,
        config: requested.renderedConfig,
      },
      'build starts',
    );
    const { baseImage, architectures, sameAs } = requested;
    const job = { build, machineOSConfig: config, rendered, baseImage, architectures };
    this.#options.running.start({ ...job, ...present({ sameAs }) });
  }

  async #pointTo(config: MachineOSConfig, requested: RequestedBuild): Promise<void> {
    const image = requested.build?.status?.digestedImagePushSpec;
    const { client, now } = this.#options;
    const created = { status: 'False', reason: 'BuildCreated', message: '' } as const;
    // Of the spec that was decided on: it may have changed since.
    const { generation } = config.metadata;
    const readiness = this.#readiness(config, buildReadiness(requested.build?.status?.conditions ?? []));
    const conditionsOf = (status: MachineOSConfig['status']) => {
      const before = conditionIsTrue(status?.conditions, 'BuildWaiting')
        ? withWaiting(status, created, now()).conditions
        : (status?.conditions ?? []);
      return observedAt(setReadiness(before, readiness, generation, now()), generation);
    };
    await updateStatus(client, MachineOSConfigs, config, ({ status }) => ({
      ...status,
      conditions: conditionsOf(status),
      ...present({ observedGeneration: generation, currentImagePullSpec: image }),
      machineOSBuild: {
        group: 'machineconfiguration.openshift.io',
        resource: 'machineosbuilds',
        name: requested.name,
      },
    }));
  }
}

/** The schema limits the length; the important part of a message is its beginning. */
const LONGEST_WAIT = 2_048;

function withWaiting(
  status: MachineOSConfig['status'],
  verdict: Pick<Condition, 'status' | 'reason' | 'message'>,
  now: Date,
): NonNullable<MachineOSConfig['status']> & { readonly conditions: Condition[] } {
  const type: MachineOSConfigConditionType = 'BuildWaiting';
  const condition = { type, ...verdict, message: verdict.message.slice(0, LONGEST_WAIT) };
  return { ...status, conditions: setCondition(status?.conditions ?? [], condition, now) };
}

/** As many as a label may have (disruption/transitions.ts). */
const MAX_TRANSITIONS = 1000;

/** How many images of earlier builds are recorded: far more than a build is ever interrupted. */
const MAX_EARLIER_IMAGES = 100;

function newBuild(
  config: MachineOSConfig,
  requested: RequestedBuild,
  earlier: readonly DigestedPullspec[],
): NewObject<MachineOSBuild> {
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineOSBuild',
    metadata: {
      name: requested.name,
      labels: labelsWithNames({
        [labels.targetPool]: config.spec.machineConfigPool.name,
        [labels.machineOSConfig]: config.metadata.name,
        [labels.renderedConfig]: requested.renderedConfig,
        ...(requested.preBuiltImage === undefined ? {} : { [labels.preBuiltImage]: 'true' }),
      }),
      annotations: {
        [annotations.buildNameVersion]: BUILD_NAME_VERSION,
        [annotations.earlierImages]: earlier.slice(-MAX_EARLIER_IMAGES).join(' '),
        ...present({
          [annotations.pushSecret]: config.spec.renderedImagePushSecret?.name,
          [annotations.preBuiltImage]: requested.preBuiltImage,
          [annotations.relabels]: requested.relabels,
          [annotations.forRollback]: requested.sameAs === undefined ? undefined : 'true',
        }),
      },
    },
    spec: {
      machineConfig: { name: requested.renderedConfig },
      machineOSConfig: { name: config.metadata.name },
      renderedImagePushSpec: pushSpecOf(config.spec.renderedImagePushSpec, requested.name),
      policyDigest: requested.policyDigest,
      baseImage: requested.baseImage,
      transitionsFrom: [...requested.transitionsFrom].slice(0, MAX_TRANSITIONS),
    },
  };
}

function formatFailures(failing: readonly FailingStep[]): string {
  return failing.map(formatFailing).join('; ');
}
