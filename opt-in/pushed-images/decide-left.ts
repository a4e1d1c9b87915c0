import { hasEnded } from '../../api/build-outcome.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { bootImageTag, type MachineOSConfig } from '../../api/machine-os-config.ts';
import { type DigestedPullspec, repositoryOf } from '../../api/references.ts';
import { imagesOf, isSilent, type PruneObservation, rollbackOf, usedImages } from '../decide-prune.ts';
import { imagesOfEntry, type PushedImages, type PushedImagesRecord } from './record.ts';

export type LeftObservation = Omit<PruneObservation, 'hasBuilder' | 'keep'>;

/** Images that a MachineOSBuild pushed and that no object names any more. */
export interface LeftImages {
  /** The MachineOSBuild's name. */
  readonly build: string;
  readonly pool: string;
  readonly repository: string;
  readonly pushSecret?: string | undefined;
  readonly images: readonly DigestedPullspec[];
  /** The tag for new nodes, if nobody moves it any more: the pool is not layered. */
  readonly retiredTag?: string | undefined;
}

/**
 * Decides which recorded images are deleted: those that no MachineOSBuild of any pool names, that no node runs or is
 * assigned to, that no PoolRevision of a layered pool names, and that no rollback, deadline or new node needs.
 *
 * As in decidePrune, a node that has not reported what it runs may run any image of its pool, and a build that is not
 * over may push, or use, an image that exists. A MachineOSConfig whose current build was deleted is about to get it
 * again.
 */
export function decideLeft(observation: LeftObservation, record: PushedImagesRecord): readonly LeftImages[] {
  const kept = keptImages(observation);
  const left: LeftImages[] = [];
  for (const [build, entry] of record) {
    const images = imagesOfEntry(entry).filter((image) => !kept.has(image));
    if (images.length === 0 || isHeldBack(entry, observation)) continue;
    const { pool, repository } = entry;
    const pushSecret = pushSecretOf(entry, observation);
    const retiredTag = retiredTagOf(entry, observation);
    left.push({ build, pool, repository, images, pushSecret, retiredTag });
  }
  return left;
}

/**
 * @returns what of it is still to be deleted, by the builds as they are now: a build of the same inputs may have been
 * created.
 */
export function stillLeft(left: LeftImages, builds: readonly MachineOSBuild[]): LeftImages {
  if (isBusy(left.repository, builds)) return { ...left, images: [] };
  const named = new Set<string>(builds.flatMap(imagesOf));
  return { ...left, images: left.images.filter((image) => !named.has(image)) };
}

function isHeldBack(
  { pool, repository }: PushedImages,
  { builds, machineOSConfigs, nodes, pools }: LeftObservation,
): boolean {
  return (
    isBusy(repository, builds) ||
    machineOSConfigs.some((config) => isOfRepository(config, repository) && awaitsBuild(config, builds)) ||
    nodes.some((node) => isSilent(node) && node.spec.pool.name === pool) ||
    pools.some((each) => each.metadata.name === pool && rollbackOf(each) === 'unreadable')
  );
}

function isBusy(repository: string, builds: readonly MachineOSBuild[]): boolean {
  return builds.some(
    (build) => !hasEnded(build) && repositoryOf(build.spec.renderedImagePushSpec) === repository,
  );
}

function isOfRepository({ spec }: MachineOSConfig, repository: string): boolean {
  return repositoryOf(spec.renderedImagePushSpec) === repository;
}

function awaitsBuild({ status }: MachineOSConfig, builds: readonly MachineOSBuild[]): boolean {
  const named = status?.machineOSBuild?.name;
  return named !== undefined && !builds.some(({ metadata }) => metadata.name === named);
}

function keptImages(observation: LeftObservation): ReadonlySet<string> {
  const { builds, machineOSConfigs, nodes, pools, revisions } = observation;
  const layered = new Set(machineOSConfigs.map(({ spec }) => spec.machineConfigPool.name));
  const ofPools = pools
    .filter(({ metadata }) => layered.has(metadata.name))
    .flatMap((pool) => [
      pool.status?.bootImage?.image,
      pool.status?.rollbackDeadline?.image,
      imageOfRollback(pool),
    ]);
  const ofRevisions = revisions
    .filter(({ spec }) => layered.has(spec.machineConfigPool.name))
    .flatMap(({ spec: { image, engineImages = [], baseRecords = [] } }) => [
      ...[image, ...engineImages],
      ...baseRecords.map((each) => each.image),
    ]);
  const published = machineOSConfigs.map(({ status }) => status?.publishedImage?.image);
  const all = [...builds.flatMap(imagesOf), ...usedImages(nodes), ...ofPools, ...ofRevisions, ...published];
  return new Set(all.filter((image) => image !== undefined));
}

function imageOfRollback(pool: LeftObservation['pools'][number]): string | undefined {
  const rollback = rollbackOf(pool);
  return rollback === 'unreadable' ? undefined : rollback?.image;
}

/**
 * @returns what the pool pushes to this repository with now, or did last: its Secret may have been replaced by another
 * one.
 */
function pushSecretOf(
  { pool, repository, pushSecret }: PushedImages,
  { machineOSConfigs }: LeftObservation,
): string | undefined {
  const config = machineOSConfigs.find(({ spec }) => spec.machineConfigPool.name === pool);
  return config === undefined || !isOfRepository(config, repository)
    ? pushSecret
    : config.spec.renderedImagePushSecret?.name;
}

function retiredTagOf(
  { pool, repository }: PushedImages,
  { machineOSConfigs }: LeftObservation,
): string | undefined {
  if (machineOSConfigs.some(({ spec }) => spec.machineConfigPool.name === pool)) return undefined;
  const tag = bootImageTag({
    spec: { machineConfigPool: { name: pool }, renderedImagePushSpec: `${repository}:any` },
  });
  return tag.slice(repository.length + 1);
}
