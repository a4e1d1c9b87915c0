import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import { errorMessage } from '../../api/error-message.ts';
import { type ConfigMap, ConfigMaps } from '../../api/kubernetes.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineOSBuilds } from '../../api/machine-os-build.ts';
import { MachineOSConfigs } from '../../api/machine-os-config.ts';
import { PUSHED_IMAGES_CONFIG_MAP } from '../../api/names.ts';
import type { Kind, KubernetesObject } from '../../api/object.ts';
import { plural } from '../../api/plural.ts';
import { PoolRevisions } from '../../api/pool-revision.ts';
import { type DigestedPullspec, pullspecDigest } from '../../api/references.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { done, type Result } from '../../cluster/controller.ts';
import type { EventRecorder } from '../../cluster/events.ts';
import type { Informer } from '../../cluster/informer.ts';
import type { LayeringCaches } from '../observe-layering.ts';
import { decideLeft, type LeftImages, type LeftObservation, stillLeft } from './decide-left.ts';
import {
  type PushedImagesRecord,
  readPushedImages,
  recordConfigMap,
  withBuilds,
  withoutImages,
} from './record.ts';
import type { SeenBuilds } from './seen-builds.ts';

/**
 * Deletes images whose MachineOSBuild is gone. The operator's main provides it, because this room may not import
 * image/.
 */
export interface LeftImagePruner {
  /**
   * @returns the digests that a tag of somebody else's names. Deleting a manifest by digest deletes all of its tags.
   * @throws {Error} that says why the tags could not be read.
   */
  taggedByOthers(left: LeftImages, signal: AbortSignal): Promise<ReadonlySet<string>>;
  /** @returns when the image is deleted, or did not exist. @throws {Error} that says why it could not be deleted. */
  deleteImage(image: DigestedPullspec, left: LeftImages, signal: AbortSignal): Promise<void>;
}

export interface LeftImagesParts {
  readonly client: ApiClient;
  /** Started for layering's other controller as well. */
  readonly shared: LayeringCaches['shared'];
  /** The ConfigMap of the record. */
  readonly record: Pick<Informer<ConfigMap>, 'get'>;
  readonly seen: SeenBuilds;
  readonly pruner: LeftImagePruner;
  readonly events: EventRecorder;
  readonly log: Logger;
  /** Where Shale runs. */
  readonly namespace: string;
}

/**
 * Records what MachineOSBuilds have pushed, and deletes the images of those that somebody deleted. A finalizer would do
 * so too, and leave objects that nobody can delete behind an operator that was uninstalled, or is of an earlier
 * version.
 */
export class LeftImagesController {
  readonly #parts: LeftImagesParts;

  constructor(parts: LeftImagesParts) {
    this.#parts = parts;
  }

  /** @param _key the record is one key. @throws ApiError; AggregateError of the images that could not be deleted. */
  async reconcile(_key: string, signal: AbortSignal): Promise<Result> {
    const record = await this.#record(signal);
    if (decideLeft(this.#fromCaches(), record).length === 0) return done;
    // Not by caches, which may be behind: an image must not be deleted while a node uses it.
    const left = decideLeft(await this.#fromServer(signal), record);
    const failures: unknown[] = [];
    const forgotten: DigestedPullspec[] = [];
    for (const each of left) {
      try {
        forgotten.push(...(await this.#delete(each, signal)));
      } catch (error) {
        signal.throwIfAborted();
        failures.push(error);
        this.#reportFailure(each, error);
      }
    }
    if (forgotten.length > 0) await this.#write((before) => withoutImages(before, forgotten), signal);
    if (failures.length === 0) return done;
    const builds = plural(failures.length, 'deleted MachineOSBuild');
    throw new AggregateError(failures, `images of ${builds} could not be deleted`);
  }

  /** Records what builds have pushed and the record doesn't have. @returns the record as it is then. */
  async #record(signal: AbortSignal): Promise<PushedImagesRecord> {
    const { shared, record, seen, namespace } = this.#parts;
    const builds = shared.machineOSBuilds.list();
    const [deleted, pruned] = [seen.deleted(), seen.pruned()];
    const compute = (before: PushedImagesRecord) => {
      const rest = withoutImages(
        before,
        pruned.flatMap(({ images }) => images),
      );
      const pushing = [...builds.filter((build) => !seen.isPruned(build)), ...deleted];
      return withBuilds(rest, pushing, {
        machineOSConfigs: shared.machineOSConfigs.list(),
        pools: shared.pools.list(),
      });
    };
    const cached = record.get(PUSHED_IMAGES_CONFIG_MAP, namespace);
    const kept = isAsComputed(cached, compute)
      ? readPushedImages(cached)
      : await this.#write(compute, signal);
    seen.recorded(deleted, ({ metadata }) =>
      builds.some((build) => build.metadata.name === metadata.name && build.metadata.uid === metadata.uid),
    );
    return kept;
  }

  /** @throws ApiError; a conflict, if an earlier operator still writes. */
  async #write(
    compute: (before: PushedImagesRecord) => PushedImagesRecord,
    signal: AbortSignal,
  ): Promise<PushedImagesRecord> {
    const { client, namespace } = this.#parts;
    const where = { namespace, signal };
    const present = await client.find(ConfigMaps, PUSHED_IMAGES_CONFIG_MAP, where);
    const record = compute(readPushedImages(present));
    const desired = recordConfigMap(record);
    if (present === undefined) {
      if (record.size > 0) await client.create(ConfigMaps, desired, where);
    } else if (record.size === 0) await client.delete(ConfigMaps, PUSHED_IMAGES_CONFIG_MAP, where);
    else if (!isDeepStrictEqual(present.data, desired.data))
      await client.replace(ConfigMaps, { ...present, data: desired.data ?? {} }, where);
    return record;
  }

  /** @returns the images that are deleted, and those that are somebody else's now. */
  async #delete(given: LeftImages, signal: AbortSignal): Promise<readonly DigestedPullspec[]> {
    const { client, pruner, log } = this.#parts;
    const others = await pruner.taggedByOthers(given, signal);
    const isTheirs = (image: DigestedPullspec) => others.has(pullspecDigest(image));
    // A build of the same inputs pushes the same images, and may have been created since.
    const { items: builds } = await client.list(MachineOSBuilds, { signal });
    const { images } = stillLeft(given, builds);
    // An index before the images in it, which some registries refuse to delete while it is there.
    for (const image of images.filter((each) => !isTheirs(each)).toReversed())
      await pruner.deleteImage(image, given, signal);
    if (images.length > 0)
      log.info(
        { build: given.build, images, tagged: images.filter(isTheirs) },
        'deleted the images of a MachineOSBuild that was deleted',
      );
    return images;
  }

  #fromCaches(): LeftObservation {
    const { machineOSBuilds, machineOSConfigs, machineConfigNodes, pools, poolRevisions } =
      this.#parts.shared;
    return {
      builds: machineOSBuilds.list(),
      machineOSConfigs: machineOSConfigs.list(),
      nodes: machineConfigNodes.list(),
      pools: pools.list(),
      revisions: poolRevisions.list(),
    };
  }

  async #fromServer(signal: AbortSignal): Promise<LeftObservation> {
    const { client } = this.#parts;
    const list = async <T extends KubernetesObject>(kind: Kind<T>) =>
      (await client.list(kind, { signal })).items;
    const [builds, machineOSConfigs, nodes, pools, revisions] = await Promise.all([
      list(MachineOSBuilds),
      list(MachineOSConfigs),
      list(MachineConfigNodes),
      list(MachineConfigPools),
      list(PoolRevisions),
    ]);
    return { builds, machineOSConfigs, nodes, pools, revisions };
  }

  /** On the pool: the object of the build is gone. */
  #reportFailure({ build, pool, images }: LeftImages, error: unknown): void {
    const { events, shared, namespace } = this.#parts;
    const object = shared.pools.list().find(({ metadata }) => metadata.name === pool);
    if (object === undefined) return;
    const why = errorMessage(error);
    events.warning(
      object,
      'PruneFailed',
      `Could not delete ${images.join(', ')} of MachineOSBuild ${build}, which was deleted: ${why}. Shale retries until it succeeds or ${build} is removed from ConfigMap ${namespace}/${PUSHED_IMAGES_CONFIG_MAP}.`,
    );
  }
}

function isAsComputed(
  cached: ConfigMap | undefined,
  compute: (before: PushedImagesRecord) => PushedImagesRecord,
): boolean {
  const desired = compute(readPushedImages(cached));
  return desired.size === 0
    ? cached === undefined
    : isDeepStrictEqual(cached?.data, recordConfigMap(desired).data);
}
