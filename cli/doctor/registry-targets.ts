import { z } from 'zod';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import { NODE_PULL_SECRET } from '../../api/names.ts';
import { present } from '../../api/present.ts';
import { imagePushSpec } from '../../opt-in/machine-os-configs.ts';
import { nodesOfPool, type ObservedCluster } from '../observe/observed-cluster.ts';

/** What is tried of one pool's images. It goes into the arguments of a probe, too: names alone, and no secret. */
export const RegistryTarget = z.strictObject({
  pool: z.string(),
  /** Secrets beside Shale with the credentials; of two that are for one registry the later counts. */
  secrets: z.array(z.string()),
  /** An image to read. */
  pull: z.string().optional(),
  /** Whether it may not be there yet: then an answer that says so is one. */
  mayBeMissing: z.boolean().optional(),
  /** Where to begin an upload, which is cancelled. */
  push: z.string().optional(),
});
export type RegistryTarget = z.infer<typeof RegistryTarget>;

/** What `shale enable` is to be told: to be tried before. */
export interface PlannedImage {
  readonly imageRepository?: string;
  readonly pushSecret?: string;
  readonly pullSecret?: string;
  readonly baseImage?: string;
}

/** Stands for the pools of a cluster that has none yet. */
const FIRST_POOL = 'worker';

/**
 * What the builder does: read the base image, push the pool's.
 *
 * @param baseImages base images that MachineConfigs name, by pool.
 * @param planned counts for pools without a MachineOSConfig; without an image repository for none.
 */
export function builderTargets(
  { machineOSConfigs, pools }: Pick<ObservedCluster, 'machineOSConfigs' | 'pools'>,
  baseImages: ReadonlyMap<string, string>,
  planned: PlannedImage = {},
): readonly RegistryTarget[] {
  const layered = new Set(machineOSConfigs.map(({ spec }) => spec.machineConfigPool.name));
  const names = pools.map(({ metadata }) => metadata.name);
  const plannedTargets = (names.length === 0 ? [FIRST_POOL] : names)
    .filter((pool) => planned.imageRepository !== undefined && !layered.has(pool))
    .map((pool) => plannedTarget(pool, planned, baseImages.get(pool)));
  return [...machineOSConfigs.map((config) => targetOf(config, baseImages)), ...plannedTargets];
}

function targetOf({ spec }: MachineOSConfig, baseImages: ReadonlyMap<string, string>): RegistryTarget {
  const pool = spec.machineConfigPool.name;
  const pull = baseImages.get(pool) ?? spec.baseImage;
  return {
    pool,
    secrets: named(spec.baseImagePullSecret?.name, spec.renderedImagePushSecret?.name),
    push: spec.renderedImagePushSpec,
    ...present({ pull }),
  };
}

function plannedTarget(
  pool: string,
  { imageRepository = '', pushSecret, pullSecret, baseImage }: PlannedImage,
  osImage: string | undefined,
): RegistryTarget {
  const pull = osImage ?? baseImage;
  return {
    pool,
    secrets: named(pullSecret, pushSecret),
    push: imagePushSpec(imageRepository, pool),
    ...present({ pull }),
  };
}

/**
 * What a node does: pull the image that it is to run, or, where there is none yet, look where it will be.
 *
 * @param targets the builder's. @param hasPullSecret whether nodes are given credentials of their own.
 */
export function nodeTargets(
  targets: readonly RegistryTarget[],
  seen: Pick<ObservedCluster, 'machineConfigNodes'>,
  hasPullSecret: boolean,
): readonly RegistryTarget[] {
  const secrets = hasPullSecret ? [NODE_PULL_SECRET] : [];
  return targets.map(({ pool, push = '' }) => {
    const images = nodesOfPool(seen, pool).flatMap(({ spec }) => spec.configImage?.desiredImage ?? []);
    const [image] = images;
    return image === undefined
      ? { pool, secrets, pull: push, mayBeMissing: true }
      : { pool, secrets, pull: image };
  });
}

const named = (...names: readonly (string | undefined)[]): string[] =>
  names.filter((name) => name !== undefined);
