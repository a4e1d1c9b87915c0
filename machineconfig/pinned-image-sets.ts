import type { MachineConfigNode } from '../api/machine-config-node.ts';
import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import { by } from '../api/order.ts';
import type { PinnedImageSet, PinnedImagesRequest } from '../api/pinned-image-set.ts';
import { settingOf } from '../api/pool-settings/read-settings.ts';
import { present } from '../api/present.ts';
import { selectsLabels } from './pools.ts';
import { runtimeOf } from './services/runtime-flavour.ts';

/** The PinnedImageSets of a pool. */
interface SetsOfPool {
  /** In the order in which their images are pulled. */
  readonly sets: readonly PinnedImageSet[];
  /** Names in the pool's spec.pinnedImageSets that no object has. */
  readonly missing: readonly string[];
}

/**
 * Selects the PinnedImageSets of a pool: those that its spec.pinnedImageSets names, in that order, then those whose
 * labels its machineConfigSelector selects, by name. MCO writes the latter to the pool's spec; Shale leaves the spec to
 * its owner.
 */
export function pinnedImageSetsOf({ spec }: MachineConfigPool, all: readonly PinnedImageSet[]): SetsOfPool {
  const names = (spec.pinnedImageSets ?? []).map(({ name }) => name);
  const byName = new Map(all.map((set) => [set.metadata.name, set]));
  const named = names.flatMap((name) => byName.get(name) ?? []);
  const selected = all
    .filter(({ metadata }) => selectsLabels(spec.machineConfigSelector, metadata.labels ?? {}))
    .filter((set) => !named.includes(set))
    .toSorted(by(({ metadata }) => metadata.name));
  return { sets: [...named, ...selected], missing: names.filter((name) => !byName.has(name)) };
}

/**
 * Decides what a node is asked to pull and keep.
 *
 * @param runtimeVersion of the node's status, such as `cri-o://1.34.1`; the pool's annotation overrides it.
 * @returns undefined if the pool selects no PinnedImageSet and names none.
 */
export function pinnedImagesRequest(
  pool: MachineConfigPool,
  all: readonly PinnedImageSet[],
  runtimeVersion: string | undefined,
): PinnedImagesRequest | undefined {
  const { sets, missing } = pinnedImageSetsOf(pool, all);
  if (sets.length + missing.length === 0) return undefined;
  const stated = settingOf(pool, 'containerRuntime');
  const runtime = runtimeOf([{ stated, versions: [runtimeVersion] }]);
  const problems = [
    ...missing.map((name) => `PinnedImageSet ${name} of spec.pinnedImageSets does not exist`),
    ...(runtime.ok ? [] : [`the container runtime of the node is not known: ${runtime.why}`]),
  ];
  return {
    sets: sets.map(({ metadata }) => ({ name: metadata.name, generation: metadata.generation ?? 1 })),
    ...present({
      containerRuntime: runtime.ok ? runtime.flavour : undefined,
      problem: problems.length === 0 ? undefined : problems.join('; '),
    }),
  };
}

/**
 * @param node that has to keep images.
 * @returns whether it has all of them, in the generations that are asked for.
 */
export function hasPinnedImages({ spec, status }: Pick<MachineConfigNode, 'spec' | 'status'>): boolean {
  const { sets = [], problem } = spec.pinnedImages ?? {};
  const isPinned = (name: string, generation: number) =>
    status?.pinnedImageSets?.some((set) => set.name === name && set.currentGeneration === generation);
  return problem === undefined && sets.every(({ name, generation }) => isPinned(name, generation) === true);
}
