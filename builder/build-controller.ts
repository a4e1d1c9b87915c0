import type { Logger } from 'pino';
import type { MachineConfig } from '../api/machine-config.ts';
import { type MachineOSBuild, MachineOSBuilds } from '../api/machine-os-build.ts';
import { type MachineOSConfig, MachineOSConfigs } from '../api/machine-os-config.ts';
import { annotations, labels, MACHINE_CONFIGURATION } from '../api/names.ts';
import type { NewObject } from '../api/object.ts';
import { aboutChange } from '../cluster/about-change.ts';
import { type ApiClient, isAlreadyExists } from '../cluster/api-client.ts';
import { done, type Result, requeueAfter } from '../cluster/controller.ts';
import type { EventRecorder } from '../cluster/events.ts';
import { updateStatus } from '../cluster/update-status.ts';
import { isMovable } from './base-images.ts';
import { BUILD_NAME_VERSION, pushSpecOf } from './build-name.ts';
import { isOver } from './build-state.ts';
import { type BuildDecision, decideBuild, requestedBase } from './decide.ts';
import type { BuildCaches } from './observe.ts';
import { type BuildPhase, buildStatus } from './status.ts';
import type { RunningBuilds } from './steps/running-builds.ts';

export interface BuildControllerOptions {
  readonly client: ApiClient;
  readonly caches: BuildCaches;
  readonly running: RunningBuilds;
  readonly events: EventRecorder;
  readonly log: Logger;
  readonly now: () => Date;
  /** @returns the base image by digest. @throws what keeps a tag from being looked up. */
  readonly resolveBase: (config: MachineOSConfig, requested: string) => Promise<string>;
  /** ms after which a base image by tag is looked at again. */
  readonly baseCheckMs: number;
  /** In Go's words. */
  readonly ownArchitecture: string;
}

type WantedBuild = Extract<BuildDecision, { kind: 'build' }>;

/**
 * The reconciler of one MachineOSConfig: its builds become what decideBuild says.
 *
 * @returns a function of the MachineOSConfig's name.
 */
export function buildReconciler(options: BuildControllerOptions): (name: string) => Promise<Result> {
  const { client, caches, running } = options;

  async function interrupt(build: MachineOSBuild, why: string): Promise<void> {
    await running.abort(build.metadata.name);
    const phase: BuildPhase = { kind: 'interrupted', message: why };
    await updateStatus(client, MachineOSBuilds, build, (seen) =>
      isOver(seen) ? seen.status : buildStatus(seen.status, phase, options.now().toISOString()),
    );
    aboutChange(options, build.spec.machineConfig.name).events.normal(build, 'BuildInterrupted', why);
  }

  async function create(config: MachineOSConfig, wanted: WantedBuild): Promise<MachineOSBuild | undefined> {
    try {
      return await client.create(MachineOSBuilds, newBuild(config, wanted));
    } catch (error) {
      // Made by an earlier pass that the cache does not show yet: its own event brings this key back.
      if (isAlreadyExists(error)) return undefined;
      throw error;
    }
  }

  async function pointTo(config: MachineOSConfig, wanted: WantedBuild): Promise<void> {
    const image = wanted.build?.status?.digestedImagePushSpec;
    await updateStatus(client, MachineOSConfigs, config, ({ metadata, status }) => ({
      ...status,
      ...(metadata.generation === undefined ? {} : { observedGeneration: metadata.generation }),
      machineOSBuild: {
        group: 'machineconfiguration.openshift.io',
        resource: 'machineosbuilds',
        name: wanted.name,
      },
      ...(image === undefined ? {} : { currentImagePullSpec: image }),
    }));
  }

  return async (name) => {
    const config = caches.machineOSConfigs.get(name);
    const builds = caches.builds.list().filter((build) => build.spec.machineOSConfig.name === name);
    if (config === undefined) {
      // Its builds' images may still be run by nodes; the operator prunes them when none does.
      for (const build of builds)
        if (!isOver(build)) await interrupt(build, `MachineOSConfig ${name} was deleted`);
      return done;
    }
    const pool = caches.pools.get(config.spec.machineConfigPool.name);
    const rendered = caches.machineConfigs.get(pool?.spec.configuration?.name ?? '');
    const tellers = aboutChange(options, pool?.spec.configuration?.name);
    const requested = requestedBase(config, rendered);
    const decision = decideBuild({
      machineOSConfig: config,
      pool,
      rendered,
      baseImage: requested === undefined ? undefined : await baseOf(config, requested, tellers.events),
      policyDigest: caches.machineConfigurations.get(MACHINE_CONFIGURATION)?.status?.policyDigest,
      ownArchitecture: options.ownArchitecture,
      builds,
      running: running.names(),
    });
    if (decision.kind === 'wait') {
      tellers.log.info({ pool: config.spec.machineConfigPool.name, why: decision.why }, 'no build yet');
      tellers.events.normal(config, 'BuildWaiting', decision.why);
      return done;
    }
    for (const older of decision.interrupt) {
      await interrupt(older, `${decision.name} with newer inputs takes its place`);
    }
    await take(config, decision);
    await pointTo(config, decision);
    // A tag may come to name another image, and nothing tells of it.
    return requested !== undefined && isMovable(requested) ? requeueAfter(options.baseCheckMs) : done;
  };

  /** @throws what keeps the tag from being looked up; the controller tries again. */
  async function baseOf(config: MachineOSConfig, requested: string, events: EventRecorder): Promise<string> {
    try {
      return await options.resolveBase(config, requested);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      events.warning(config, 'BaseImageUnknown', `base image ${requested} can not be looked up: ${why}`);
      throw error;
    }
  }

  async function take(config: MachineOSConfig, wanted: WantedBuild): Promise<void> {
    switch (wanted.next) {
      case 'none':
        return;
      case 'recreate':
        await client.delete(MachineOSBuilds, wanted.name);
        await start(config, wanted, await create(config, wanted));
        return;
      case 'create':
        await start(config, wanted, await create(config, wanted));
        return;
      case 'start':
        await start(config, wanted, wanted.build);
    }
  }

  async function start(
    config: MachineOSConfig,
    wanted: WantedBuild,
    build: MachineOSBuild | undefined,
  ): Promise<void> {
    const rendered: MachineConfig | undefined = caches.machineConfigs.get(wanted.renderedConfig);
    if (build === undefined || rendered === undefined) return;
    aboutChange(options, wanted.renderedConfig).log.info(
      { pool: config.spec.machineConfigPool.name, build: wanted.name, config: wanted.renderedConfig },
      'build starts',
    );
    const { baseImage, architectures } = wanted;
    running.start({ build, machineOSConfig: config, rendered, baseImage, architectures });
  }
}

function newBuild(config: MachineOSConfig, wanted: WantedBuild): NewObject<MachineOSBuild> {
  const pool = config.spec.machineConfigPool.name;
  const secret = config.spec.renderedImagePushSecret?.name;
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineOSBuild',
    metadata: {
      name: wanted.name,
      labels: {
        [labels.targetPool]: pool,
        [labels.machineOSConfig]: config.metadata.name,
        [labels.renderedConfig]: wanted.renderedConfig,
      },
      annotations: {
        [annotations.buildNameVersion]: BUILD_NAME_VERSION,
        ...(secret === undefined ? {} : { [annotations.pushSecret]: secret }),
      },
    },
    spec: {
      machineConfig: { name: wanted.renderedConfig },
      machineOSConfig: { name: config.metadata.name },
      renderedImagePushSpec: pushSpecOf(config.spec.renderedImagePushSpec, wanted.name),
      policyDigest: wanted.policyDigest,
      baseImage: wanted.baseImage,
    },
  };
}
