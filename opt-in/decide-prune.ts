import { parseRollback, type RollbackRequest } from '../api/annotation-requests.ts';
import { hasEnded } from '../api/build-outcome.ts';
import type { MachineConfigNode } from '../api/machine-config-node.ts';
import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import { type MachineOSBuild, pushedImages, recordsPushes } from '../api/machine-os-build.ts';
import type { MachineOSConfig } from '../api/machine-os-config.ts';
import { annotations } from '../api/names.ts';
import { byCodeUnits } from '../api/order.ts';
import type { PoolRevision } from '../api/pool-revision.ts';
import { type DigestedPullspec, repositoryOf } from '../api/references.ts';
import { conditionIsTrue } from '../cluster/update-object.ts';

export interface PruneObservation {
  readonly builds: readonly MachineOSBuild[];
  readonly machineOSConfigs: readonly MachineOSConfig[];
  readonly nodes: readonly MachineConfigNode[];
  readonly pools: readonly Pick<MachineConfigPool, 'metadata' | 'status'>[];
  readonly revisions: readonly Pick<PoolRevision, 'spec'>[];
  /** Whether there is a builder, which may be running each build that is not over. */
  readonly hasBuilder: boolean;
  /** Number of finished builds that a pool keeps beyond those in use: for rollbacks, and to show what failed last. */
  readonly keep: number;
}

/** A build that is no longer needed, with the images that are deleted with it. */
export interface PrunedBuild {
  readonly build: MachineOSBuild;
  /** Empty where a build that is kept has them too. */
  readonly images: readonly DigestedPullspec[];
  /** Tags under which it may have pushed images that it doesn't record. */
  readonly tags: readonly string[];
}

export interface Pruning {
  readonly builds: readonly PrunedBuild[];
  /**
   * Images that must not be deleted, whatever tag names them: deleting a manifest by digest deletes all of its tags.
   */
  readonly kept: ReadonlySet<string>;
}

/**
 * Decides which builds and images are deleted: those that no node runs or is assigned to, no pool has as its target,
 * and no rollback needs.
 *
 * A node that has not reported what it runs may run any image of its pool. An image is deleted by digest, and equal
 * inputs result in equal digests: it is kept while any build that is kept has it. A build that is not over may push an
 * image that exists, or use one, at any moment: until then nothing is deleted from its repository.
 */
export function decidePrune(observation: PruneObservation): Pruning {
  const { builds } = observation;
  const running = builds.filter((build) => !hasEnded(build) && isNeeded(build, observation));
  const busy = new Set(running.map(repositoryOfBuild));
  const pruned = builds.filter(
    (build) => !isNeeded(build, observation) && !busy.has(repositoryOfBuild(build)),
  );
  const staying = builds.filter((build) => !pruned.includes(build));
  const used = [...staying.flatMap(imagesOf), ...usedImages(observation.nodes)];
  const kept = new Set<string>([...used, ...recordedImages(observation)]);
  const stillUsed = new Set<string>(used);
  // What is elsewhere is another build's to take with it, or a status says more than its build has done.
  const isOwn = (build: MachineOSBuild) => (image: string) =>
    repositoryOf(image) === repositoryOfBuild(build);
  const imagesToDelete = (build: MachineOSBuild) =>
    [
      ...ownImages(build).filter((image) => !stillUsed.has(image)),
      ...leftImages(build).filter((image) => !kept.has(image)),
    ].filter(isOwn(build));
  return {
    builds: pruned.map((build) => ({
      build,
      images: [...new Set(imagesToDelete(build))],
      tags: unrecordedTags(build, observation.pools),
    })),
    kept,
  };
}
/** @returns whether a node runs a build's image, is assigned to it, or may run it. */
export function isUsed(build: MachineOSBuild, nodes: readonly MachineConfigNode[]): boolean {
  const image = build.status?.digestedImagePushSpec;
  if (image === undefined) return false;
  return (
    usedImages(nodes).includes(image) ||
    nodes.some((node) => isSilent(node) && poolOf(node) === poolOfBuild(build))
  );
}

function isNeeded(build: MachineOSBuild, observation: PruneObservation): boolean {
  if (isUsed(build, observation.nodes)) return true;
  const config = observation.machineOSConfigs.find(
    ({ metadata }) => metadata.name === build.spec.machineOSConfig.name,
  );
  // A builder that is stopping such a build may still push its image.
  if (config === undefined) return observation.hasBuilder && !hasEnded(build);
  if (isOfRollback(build, observation.pools) || isForNewNodes(build, config, observation.pools)) return true;
  if (config.status?.machineOSBuild?.name === build.metadata.name || !hasEnded(build)) return true;
  const alike = observation.builds
    .filter(({ spec }) => spec.machineOSConfig.name === config.metadata.name)
    .filter((other) => hasEnded(other) && hasSucceeded(other) === hasSucceeded(build))
    .sort(newestFirst);
  return alike.indexOf(build) < observation.keep;
}

/**
 * A pool stays rolled back to an image even while every node runs it under another label, and a deadline may roll the
 * pool back to one that no node runs now.
 */
function isOfRollback({ spec, status }: MachineOSBuild, pools: PruneObservation['pools']): boolean {
  const pool = pools.find(({ metadata }) => metadata.name === spec.machineOSConfig.name);
  const own = status?.digestedImagePushSpec;
  if (own !== undefined && pool?.status?.rollbackDeadline?.image === own) return true;
  const rollback = pool && rollbackOf(pool);
  if (rollback === undefined) return false;
  // Nothing is deleted until it is known what it names.
  if (rollback === 'unreadable') return true;
  const { config, image } = rollback;
  return image === undefined ? spec.machineConfig.name === config : own === image;
}

/**
 * @returns the rollback that is requested of a pool; undefined if there is none. That it can't be read, the pool
 * reports.
 */
export function rollbackOf({
  metadata,
}: Pick<MachineConfigPool, 'metadata'>): RollbackRequest | 'unreadable' | undefined {
  const text = metadata.annotations?.[annotations.rollback];
  if (text === undefined) return undefined;
  try {
    return parseRollback(text);
  } catch {
    return 'unreadable';
  }
}

/**
 * New nodes boot the image that the operator has chosen, and until the builder has moved the tag, the one before:
 * a registry deletes the tag with the image.
 */
function isForNewNodes(
  { status }: MachineOSBuild,
  config: MachineOSConfig,
  pools: PruneObservation['pools'],
): boolean {
  const image = status?.digestedImagePushSpec;
  if (image === undefined) return false;
  const pool = pools.find(({ metadata }) => metadata.name === config.spec.machineConfigPool.name);
  return [pool?.status?.bootImage?.image, config.status?.publishedImage?.image].includes(image);
}

/** @returns the images that nodes run or are assigned to. */
export function usedImages(nodes: readonly MachineConfigNode[]): string[] {
  return nodes.flatMap(({ spec, status }) =>
    [spec.configImage?.desiredImage, status?.configImage?.currentImage].filter(
      (image) => image !== undefined,
    ),
  );
}

/** @returns whether a node has not reported what it runs, so that it may run any image of its pool. */
export function isSilent({ status }: MachineConfigNode): boolean {
  return status?.mode === undefined;
}

function poolOf({ spec }: MachineConfigNode): string {
  return spec.pool.name;
}

/** A MachineOSConfig has the name of its pool (machineOSConfigRules). */
function poolOfBuild({ spec }: MachineOSBuild): string {
  return spec.machineOSConfig.name;
}

/** What rollouts choose from while the pool is layered. */
function recordedImages({ revisions, machineOSConfigs }: PruneObservation): string[] {
  const layered = new Set(machineOSConfigs.map(({ spec }) => spec.machineConfigPool.name));
  return revisions.flatMap(({ spec: { machineConfigPool, image } }) =>
    image !== undefined && layered.has(machineConfigPool.name) ? [image] : [],
  );
}

/** @returns every image that a build names. */
export function imagesOf(build: MachineOSBuild): DigestedPullspec[] {
  return [...ownImages(build), ...leftImages(build)];
}

/** @returns what a build that succeeded consists of. */
export function ownImages({ status }: MachineOSBuild): DigestedPullspec[] {
  // Digested by the schema of the status.
  const instances = (status?.instances ?? []).flatMap(({ image, engineImage, baseRecord }) => [
    image,
    engineImage,
    baseRecord?.image,
  ]);
  const images = [
    status?.digestedImagePushSpec,
    ...instances,
    status?.engineImage,
    status?.baseRecord?.image,
  ];
  return (images as (DigestedPullspec | undefined)[]).filter((image) => image !== undefined);
}

/** What a build has pushed beside it: everything, if it failed or was interrupted after that. */
function leftImages(build: MachineOSBuild): DigestedPullspec[] {
  const own = new Set<string>(ownImages(build));
  return pushedImages(build).filter((image) => !own.has(image));
}

/**
 * Of a build of an earlier version that started and didn't succeed, the tag is the only trace; with one for each
 * architecture.
 */
function unrecordedTags(build: MachineOSBuild, pools: PruneObservation['pools']): string[] {
  if (recordsPushes(build) || hasSucceeded(build) || build.status?.buildStart === undefined) return [];
  const { renderedImagePushSpec: tag } = build.spec;
  const pool = pools.find(({ metadata }) => metadata.name === poolOfBuild(build));
  const architectures = pool?.status?.architectures ?? [];
  return [tag, ...(architectures.length > 1 ? architectures.map((each) => `${tag}-${each}`) : [])];
}

function repositoryOfBuild({ spec }: MachineOSBuild): string {
  return repositoryOf(spec.renderedImagePushSpec);
}

function hasSucceeded({ status }: MachineOSBuild): boolean {
  return conditionIsTrue(status?.conditions, 'Succeeded');
}

/** Of builds that ended in the same second, the names decide. */
function newestFirst(a: MachineOSBuild, b: MachineOSBuild): number {
  const end = ({ status }: MachineOSBuild) => status?.buildEnd ?? '';
  return byCodeUnits(end(b), end(a)) || byCodeUnits(a.metadata.name, b.metadata.name);
}
