import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineConfigPool, PoolConfiguration } from '../../api/machine-config-pool.ts';
import { byCodeUnits } from '../../api/order.ts';
import { isForged } from '../../machineconfig/rendered-name.ts';

/**
 * The value of `pool.spec.configuration` for a rendering, in MCO's form.
 *
 * @param sources names of the merged MachineConfigs, in merge order.
 */
export function poolConfiguration(rendered: string, sources: readonly string[]): PoolConfiguration {
  return {
    name: rendered,
    source: sources.map((name) => ({
      apiVersion: 'machineconfiguration.openshift.io/v1',
      kind: 'MachineConfig',
      name,
    })),
  };
}

/** @returns whether both name the same rendering of the same MachineConfigs. */
export function sameConfiguration(a: PoolConfiguration | undefined, b: PoolConfiguration): boolean {
  const text = (configuration: PoolConfiguration | undefined) =>
    JSON.stringify([configuration?.name, ...(configuration?.source ?? []).map(({ name }) => name)]);
  return text(a) === text(b);
}

/**
 * @returns whether a MachineConfig was rendered for this pool: the pool is its controller, and its name isn't a digest
 *   of something else. Anybody who may create MachineConfigs may name an owner.
 */
export function isRenderedFor(pool: MachineConfigPool, config: MachineConfig): boolean {
  return isOwnedBy(pool, config) && !isForged(config);
}

/** @returns whether the pool is the controller of a MachineConfig. */
export function isOwnedBy(pool: MachineConfigPool, { metadata }: MachineConfig): boolean {
  return (metadata.ownerReferences ?? []).some(
    ({ kind, name, uid, controller }) =>
      controller === true &&
      kind === 'MachineConfigPool' &&
      name === pool.metadata.name &&
      (pool.metadata.uid === undefined || uid === pool.metadata.uid),
  );
}

/**
 * Rendered configs of a pool that are no longer needed.
 *
 * @param rendered the pool's rendered configs.
 * @param inUse names that a pool, a node or a build refers to: they stay whatever their age.
 * @param keep how many of the others are kept for rollbacks, the newest.
 */
export function expiredRenderings(
  rendered: readonly MachineConfig[],
  inUse: ReadonlySet<string>,
  keep: number,
): readonly MachineConfig[] {
  const age = ({ metadata }: MachineConfig) => `${metadata.creationTimestamp ?? ''} ${metadata.name}`;
  const idle = rendered
    .filter(({ metadata }) => !inUse.has(metadata.name) && metadata.deletionTimestamp === undefined)
    .toSorted((a, b) => byCodeUnits(age(b), age(a)));
  return idle.slice(keep);
}
