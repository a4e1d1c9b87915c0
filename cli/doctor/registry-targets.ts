import { z } from 'zod';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import { imagePushSpec } from '../../opt-in/machine-os-configs.ts';
import { nodesOfPool, type ObservedCluster } from '../../view/observed-cluster.ts';

/** What to test for the images of one pool. It is also an argument of a probe, so it contains names and no secrets. */
export const RegistryTarget = z.strictObject({
  pool: z.string(),
  /** Secrets with the credentials, in Shale's namespace; of two for one registry the later is used. */
  secrets: z.array(z.string()),
  /** An image to read. */
  pull: z.string().optional(),
  /** Whether the image may not exist yet; then 404 is a success. */
  mayBeMissing: z.boolean().optional(),
  /** Where to start an upload, which is cancelled. */
  push: z.string().optional(),
});
export type RegistryTarget = z.infer<typeof RegistryTarget>;

/** Settings for `shale enable`, to test before it is run. */
export interface PlannedRegistry {
  readonly imageRepository?: string;
  readonly pushSecret?: string;
  readonly pullSecret?: string;
  readonly baseImage?: string;
}

/** The pool to test for in a cluster that has none yet. */
const FIRST_POOL = 'worker';

/**
 * The builder reads the base image and pushes the pool's image.
 *
 * @param baseImages base images that MachineConfigs name, by pool.
 * @param planned applies to pools without a MachineOSConfig; without an image repository to none.
 */
export function builderTargets(
  { machineOSConfigs, pools }: Pick<ObservedCluster, 'machineOSConfigs' | 'pools'>,
  baseImages: ReadonlyMap<string, string>,
  planned: PlannedRegistry = {},
): readonly RegistryTarget[] {
  const layered = new Set(machineOSConfigs.map(({ spec }) => spec.machineConfigPool.name));
  const names = pools.map(({ metadata }) => metadata.name);
  const plannedTargets = (names.length === 0 ? [FIRST_POOL] : names)
    .filter((pool) => planned.imageRepository !== undefined && !layered.has(pool))
    .map((pool) => ({
      pool,
      secrets: named(planned.pullSecret, planned.pushSecret),
      push: imagePushSpec(planned.imageRepository ?? '', pool),
      pull: baseImages.get(pool) ?? planned.baseImage,
    }));
  return [...machineOSConfigs.map((config) => targetOf(config, baseImages)), ...plannedTargets];
}

function targetOf({ spec }: MachineOSConfig, baseImages: ReadonlyMap<string, string>): RegistryTarget {
  const pool = spec.machineConfigPool.name;
  return {
    pool,
    secrets: named(spec.baseImagePullSecret?.name, spec.renderedImagePushSecret?.name),
    push: spec.renderedImagePushSpec,
    pull: baseImages.get(pool) ?? spec.baseImage,
  };
}

/**
 * A node pulls its target image. Before there is one, its repository is checked.
 *
 * @param targets the builder's. @param secrets with the credentials that nodes are given.
 */
export function nodeTargets(
  targets: readonly RegistryTarget[],
  cluster: Pick<ObservedCluster, 'machineConfigNodes'>,
  secrets: string[],
): readonly RegistryTarget[] {
  return targets.map(({ pool, push = '' }) => {
    const images = nodesOfPool(cluster, pool).flatMap(({ spec }) => spec.configImage?.desiredImage ?? []);
    const [image] = images;
    return image === undefined
      ? { pool, secrets, pull: push, mayBeMissing: true }
      : { pool, secrets, pull: image };
  });
}

const named = (...names: readonly (string | undefined)[]): string[] =>
  names.filter((name) => name !== undefined);
