import type { MachineConfigNode } from '../api/machine-config-node.ts';
import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import type { MachineOSBuild } from '../api/machine-os-build.ts';
import type { MachineOSConfig } from '../api/machine-os-config.ts';
import { annotations } from '../api/names.ts';
import { byCodeUnits } from '../api/order.ts';
import type { DigestedPullspec } from '../api/references.ts';
import { parseRollback } from '../api/rollback-request.ts';
import { conditionIsTrue } from '../cluster/update-object.ts';

export interface PruneObservation {
  readonly builds: readonly MachineOSBuild[];
  readonly machineOSConfigs: readonly MachineOSConfig[];
  readonly nodes: readonly MachineConfigNode[];
  readonly pools: readonly Pick<MachineConfigPool, 'metadata'>[];
  /** Number of finished builds that a pool keeps beyond those in use: for rollbacks, and to show what failed last. */
  readonly keep: number;
}

/** A build that is no longer needed, with the images that are deleted with it. */
export interface PrunedBuild {
  readonly build: MachineOSBuild;
  /** Empty where a build that is kept has them too. */
  readonly images: readonly DigestedPullspec[];
}

/**
 * Decides which builds and images are deleted: those that no node runs or is assigned to, no pool has as its target, and no
 * rollback needs.
 *
 * A node that has not reported what it runs may run any image of its pool. An image is deleted by digest, and equal inputs
 * result in equal digests: it is kept while any build that is kept has it.
 */
export function decidePrune(observation: PruneObservation): readonly PrunedBuild[] {
  const pruned = observation.builds.filter((build) => !isNeeded(build, observation));
  const staying = observation.builds.filter((build) => !pruned.includes(build));
  const kept = new Set([...staying.flatMap(imagesOf), ...usedImages(observation.nodes)]);
  return pruned.map((build) => ({ build, images: imagesOf(build).filter((image) => !kept.has(image)) }));
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
  if (config === undefined) return false;
  if (isHeld(build, observation.pools)) return true;
  if (config.status?.machineOSBuild?.name === build.metadata.name || !isOver(build)) return true;
  const alike = observation.builds
    .filter(({ spec }) => spec.machineOSConfig.name === config.metadata.name)
    .filter((other) => isOver(other) && hasSucceeded(other) === hasSucceeded(build))
    .sort(newestFirst);
  return alike.indexOf(build) < observation.keep;
}

/** A rollback holds its pool at an image even while every node runs that under another label. */
function isHeld({ spec, status }: MachineOSBuild, pools: PruneObservation['pools']): boolean {
  const pool = pools.find(({ metadata }) => metadata.name === spec.machineOSConfig.name);
  const text = pool?.metadata.annotations?.[annotations.rollback];
  if (text === undefined) return false;
  try {
    const { config, image } = parseRollback(text);
    return image === undefined ? spec.machineConfig.name === config : status?.digestedImagePushSpec === image;
  } catch {
    // The pool reports that it can't be read: nothing is deleted until it is known what it names.
    return true;
  }
}

function usedImages(nodes: readonly MachineConfigNode[]): string[] {
  return nodes.flatMap(({ spec, status }) =>
    [spec.configImage?.desiredImage, status?.configImage?.currentImage].filter(
      (image) => image !== undefined,
    ),
  );
}

function isSilent({ status }: MachineConfigNode): boolean {
  return status?.mode === undefined;
}

function poolOf({ spec }: MachineConfigNode): string {
  return spec.pool.name;
}

/** A MachineOSConfig has the name of its pool (machineOSConfigRules). */
function poolOfBuild({ spec }: MachineOSBuild): string {
  return spec.machineOSConfig.name;
}

function imagesOf({ status }: MachineOSBuild): DigestedPullspec[] {
  // Digested by the schema of the status.
  const instances = (status?.instances ?? []).flatMap(({ image, engineImage }) => [image, engineImage]);
  const images = [status?.digestedImagePushSpec, ...instances, status?.engineImage];
  return (images as (DigestedPullspec | undefined)[]).filter((image) => image !== undefined);
}

function hasSucceeded({ status }: MachineOSBuild): boolean {
  return conditionIsTrue(status?.conditions, 'Succeeded');
}

function isOver(build: MachineOSBuild): boolean {
  return ['Succeeded', 'Failed', 'Interrupted'].some((type) =>
    conditionIsTrue(build.status?.conditions, type),
  );
}

/** Of builds that ended in the same second, the names decide. */
function newestFirst(a: MachineOSBuild, b: MachineOSBuild): number {
  const end = ({ status }: MachineOSBuild) => status?.buildEnd ?? '';
  return byCodeUnits(end(b), end(a)) || byCodeUnits(a.metadata.name, b.metadata.name);
}
