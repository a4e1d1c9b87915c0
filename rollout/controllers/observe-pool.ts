import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { MACHINE_CONFIGURATION } from '../../api/names.ts';
import type { Caches } from '../caches.ts';
import type { RolloutOptions } from '../options.ts';
import { isRenderedFor } from '../rendering/pool-rendering.ts';
import type { PoolObservation } from '../pools/decide-pool.ts';
import type { PoolMembers } from '../pools/pool-members.ts';
import { poolSettings } from '../pools/pool-settings.ts';
import { type NodeTarget, type PoolTarget, poolTarget, standardTarget } from '../pools/pool-target.ts';
import { decideRollback, lastGood, type Rollback, type RollbackKnowledge } from '../pools/rollback.ts';

/** A pool, where it goes and by which settings; `wanted`: where it would go if nothing held it. */
export interface PoolAim extends Omit<PoolObservation, 'nodes' | 'resting'> {
  readonly wanted: PoolTarget;
  readonly rollback: Rollback;
}

/**
 * Reads from the caches where a pool goes.
 *
 * @param members the pool's nodes, whose earlier targets matter only to a pool that is or may be rolled back.
 */
export function poolAim(
  caches: Pick<
    Caches,
    'machineConfigs' | 'machineConfigNodes' | 'machineConfigurations' | 'machineOSConfigs' | 'machineOSBuilds'
  >,
  options: RolloutOptions,
  pool: MachineConfigPool,
  members: Pick<PoolMembers, 'names'>,
): PoolAim {
  const { name } = pool.metadata;
  const policyDigest = caches.machineConfigurations.get(MACHINE_CONFIGURATION)?.status?.policyDigest;
  const builds = caches.machineOSBuilds.list().filter(({ spec }) => spec.machineOSConfig.name === name);
  // A MachineOSConfig has its pool's name (machineOSConfigRules); one that is being deleted asks for nothing.
  const found = caches.machineOSConfigs.get(name);
  const wanted = poolTarget({
    pool,
    rendered: caches.machineConfigs.get(pool.spec.configuration?.name ?? ''),
    machineOSConfig: found?.metadata.deletionTimestamp === undefined ? found : undefined,
    builds,
    policyDigest,
  });
  const settings = poolSettings(pool, options);
  const same = { pool, policyDigest, wanted };
  if (settings.rollback === undefined && !settings.autoRollback)
    return { ...same, settings, target: wanted, rollback: { kind: 'none' } };
  const known = (): RollbackKnowledge => ({
    builds,
    ran: [...members.names()].flatMap((name) => runningTarget(caches.machineConfigNodes.get(name))),
    standardTarget: (config) => {
      const rendered = caches.machineConfigs.get(config);
      return rendered !== undefined && isRenderedFor(pool, rendered)
        ? standardTarget(config, rendered)
        : undefined;
    },
  });
  const rollback: Rollback =
    settings.rollback === undefined ? { kind: 'none' } : decideRollback(settings.rollback, wanted, known());
  return {
    ...same,
    settings:
      rollback.kind === 'refused'
        ? { ...settings, closed: `the pool can't be rolled back: ${rollback.why}` }
        : settings,
    target: rollback.kind === 'held' ? rollback.target : wanted,
    rollback,
    ...(settings.autoRollback ? { lastGood: () => lastGood(pool, wanted, known()) } : {}),
  };
}

function runningTarget(node: MachineConfigNode | undefined): readonly NodeTarget[] {
  const { configVersion, configImage, mode } = node?.status ?? {};
  if (configVersion === undefined || configVersion.current === '') return [];
  const image = mode === 'Layered' ? configImage?.currentImage : undefined;
  return [{ config: configVersion.current, ...(image === undefined ? {} : { image }) }];
}
