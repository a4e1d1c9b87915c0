import type { Logger } from 'pino';
import { errorMessage } from '../api/error-message.ts';
import { type Deployment, Deployments } from '../api/kubernetes.ts';
import { type MachineOSBuild, MachineOSBuilds } from '../api/machine-os-build.ts';
import { MachineOSConfigs } from '../api/machine-os-config.ts';
import { BUILDER_DEPLOYMENT } from '../api/names.ts';
import type { NewObject } from '../api/object.ts';
import { plural } from '../api/plural.ts';
import type { DigestedPullspec } from '../api/references.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import type { EventRecorder } from '../cluster/events.ts';
import { placeOf, type RightChange } from './builder-rights.ts';
import type { LayeringStep } from './decide-layering.ts';
import type { PrunedBuild, Pruning } from './decide-prune.ts';
import type { MachineOSConfigChanges } from './machine-os-configs.ts';
import type { SeenBuilds } from './pushed-images/seen-builds.ts';
import { unlessExists } from './unless-exists.ts';

/** Deletes an image from its registry. The operator's main provides it, because this room may not import image/. */
export interface ImagePruner {
  /** @returns when the image is deleted, or did not exist. @throws {Error} that says why it could not be deleted. */
  deleteImage(image: DigestedPullspec, build: MachineOSBuild, signal: AbortSignal): Promise<void>;
  /**
   * @returns the image that a tag names; undefined if there is none. @throws {Error} that says why it could not be
   * read.
   */
  imageAt(tag: string, build: MachineOSBuild, signal: AbortSignal): Promise<DigestedPullspec | undefined>;
}

export interface LayeringActorParts {
  readonly client: ApiClient;
  readonly events: EventRecorder;
  readonly log: Logger;
  readonly pruner: ImagePruner;
  readonly seen: Pick<SeenBuilds, 'prune'>;
  readonly signing: { take(step: SigningStep, signal: AbortSignal): Promise<void> };
  readonly namespace: string;
}

type SigningStep = Extract<
  LayeringStep,
  { kind: 'createSigningKey' | 'publishSigningKeys' | 'removeSigningKeys' }
>;

/** A step that changes something. */
type LayeringAction = Exclude<LayeringStep, { kind: 'settled' | 'wait' }>;

/**
 * Carries out the steps that decideLayering decides. Each can be repeated: an object that exists is not created again.
 */
export class LayeringActor {
  readonly #parts: LayeringActorParts;

  constructor(parts: LayeringActorParts) {
    this.#parts = parts;
  }

  /** @throws {ApiError} {AggregateError} of the builds that could not be pruned. */
  async take(step: LayeringAction, signal: AbortSignal): Promise<void> {
    switch (step.kind) {
      case 'startBuilder':
        return this.#startBuilder(step.desired, signal);
      case 'updateBuilder':
        return this.#updateBuilder(step.desired, signal);
      case 'stopBuilder':
        return this.#stopBuilder(signal);
      case 'changeRights':
        for (const change of step.changes) await this.#changeRight(change, signal);
        return;
      case 'createSigningKey':
      case 'publishSigningKeys':
      case 'removeSigningKeys':
        return this.#parts.signing.take(step, signal);
      case 'changeMachineOSConfigs':
        return this.#changeMachineOSConfigs(step.changes, signal);
      case 'prune':
        return this.#prune(step, signal);
    }
  }

  async #startBuilder(desiredBuilder: NewObject<Deployment>, signal: AbortSignal): Promise<void> {
    const { client, log, namespace } = this.#parts;
    log.info({ deployment: BUILDER_DEPLOYMENT }, 'starting the Machine OS Builder');
    await unlessExists(client.create(Deployments, desiredBuilder, { namespace, signal }));
  }

  async #updateBuilder(desiredBuilder: NewObject<Deployment>, signal: AbortSignal): Promise<void> {
    const { client, log, namespace } = this.#parts;
    log.info({ deployment: BUILDER_DEPLOYMENT }, 'updating the Machine OS Builder');
    const { spec, metadata } = desiredBuilder;
    // A merge patch would leave what the former template had beyond the desired one, such as a node selector.
    const template = [{ op: 'replace', path: '/spec/template', value: spec.template }];
    const where = { namespace, signal };
    await client.patch(Deployments, BUILDER_DEPLOYMENT, { type: 'json', body: template }, where);
    // The template's digest is written last, so that an interrupted update is repeated.
    const rest = { metadata: { annotations: metadata.annotations }, spec: { replicas: spec.replicas } };
    await client.patch(Deployments, BUILDER_DEPLOYMENT, { type: 'merge', body: rest }, where);
  }

  async #stopBuilder(signal: AbortSignal): Promise<void> {
    const { client, log, namespace } = this.#parts;
    log.info({ deployment: BUILDER_DEPLOYMENT }, 'stopping the Machine OS Builder');
    const propagationPolicy = 'Background';
    await client.delete(Deployments, BUILDER_DEPLOYMENT, { namespace, propagationPolicy, signal });
  }

  async #changeRight(change: RightChange, signal: AbortSignal): Promise<void> {
    const { to, kind, desired } = change;
    const { client, log } = this.#parts;
    const name = BUILDER_DEPLOYMENT;
    const where = { ...placeOf(change), signal };
    log.info(
      { kind: kind.kind, name, namespace: desired.metadata.namespace, to },
      "changing the Machine OS Builder's permissions",
    );
    if (to === 'create') await unlessExists(client.create(kind, desired, where));
    else await client.delete(kind, name, where);
  }

  async #changeMachineOSConfigs(changes: MachineOSConfigChanges, signal: AbortSignal): Promise<void> {
    const { client, log } = this.#parts;
    for (const config of changes.create) {
      log.info({ pool: config.metadata.name }, 'switching the pool to layered mode');
      await unlessExists(client.create(MachineOSConfigs, config, { signal }));
    }
    for (const config of changes.replace) await client.replace(MachineOSConfigs, config, { signal });
    for (const config of changes.delete) {
      log.info({ pool: config.metadata.name }, 'switching the pool back to the stock image');
      await client.delete(MachineOSConfigs, config.metadata.name, { signal });
    }
  }

  /** A build that can't be pruned does not prevent the others from being pruned. */
  async #prune({ builds, kept }: Pruning, signal: AbortSignal): Promise<void> {
    const failures: unknown[] = [];
    for (const pruned of builds) {
      try {
        await this.#pruneOne(pruned, kept, signal);
      } catch (error) {
        signal.throwIfAborted();
        failures.push(error);
        this.#reportFailure(pruned, error);
      }
    }
    if (failures.length > 0)
      throw new AggregateError(failures, `${plural(failures.length, 'build')} could not be pruned`);
  }

  /** Deletes the images first: of some, the MachineOSBuild is the only record. */
  async #pruneOne(
    { build, images, tags }: PrunedBuild,
    kept: Pruning['kept'],
    signal: AbortSignal,
  ): Promise<void> {
    const { client, pruner, seen, log } = this.#parts;
    const deleted = [...images];
    for (const tag of tags) {
      const image = await pruner.imageAt(tag, build, signal);
      if (image !== undefined && !kept.has(image)) deleted.push(image);
    }
    for (const image of new Set(deleted)) await pruner.deleteImage(image, build, signal);
    seen.prune({ build, images: deleted });
    await client.delete(MachineOSBuilds, build.metadata.name, { signal });
    log.info({ build: build.metadata.name, images: deleted }, 'pruned build');
  }

  #reportFailure({ build, images, tags }: PrunedBuild, error: unknown): void {
    const why = errorMessage(error);
    this.#parts.events.warning(
      build,
      'PruneFailed',
      `Could not delete ${[...images, ...tags].join(', ')}: ${why}. Shale retries until it succeeds.`,
    );
  }
}
