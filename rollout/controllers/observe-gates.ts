import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { Caches } from '../caches.ts';
import { fleetLockId } from '../fleet-lock/node-id.ts';
import type { FleetLockSlots } from '../fleet-lock/slots.ts';
import type { GateInputs } from '../gates/gate-inputs.ts';
import { targetBases } from '../gates/vulnerabilities.ts';
import type { MonitoringLookups } from '../monitoring/lookup.ts';
import type { PoolSettings } from '../pools/pool-settings.ts';
import { type DependencyParts, findAwaited } from './observe-dependencies.ts';
import type { ObservedTarget } from './observe-target.ts';

export interface GateParts extends DependencyParts {
  readonly caches: DependencyParts['caches'] & Pick<Caches, 'nodes'>;
  readonly lookups: MonitoringLookups;
  readonly slots: Pick<FleetLockSlots, 'stateOf'>;
}

/** @returns what the gates of a pool ask, apart from the quorum (observe-quorum.ts): nothing is asked by this call. */
export function gateInputsOf(
  pool: MachineConfigPool,
  { settings, rollback: { ownTarget }, images: { builds } }: ObservedTarget,
  parts: GateParts,
): Omit<GateInputs, 'quorum'> {
  const { name } = pool.metadata;
  const { holdOnAlerts, holdOnQueries } = settings;
  const { alerts, queries } = parts.lookups;
  return {
    awaitedPools: findAwaited(pool, settings, parts),
    alerts: holdOnAlerts.kind === 'none' ? undefined : () => alerts.stateOf(name, holdOnAlerts),
    queries: holdOnQueries.kind === 'none' ? undefined : () => queries.stateOf(name, holdOnQueries),
    targetBases: ownTarget.kind === 'layered' ? targetBases(builds, ownTarget.target.image) : undefined,
    fleetLock: slotLookup(name, settings, parts),
  };
}

/** @returns what asks for a node's slot; undefined in a pool that names no lock service. */
function slotLookup(
  pool: string,
  { fleetLock }: PoolSettings,
  { caches, slots }: GateParts,
): GateInputs['fleetLock'] {
  switch (fleetLock.kind) {
    case 'none':
      return undefined;
    case 'unreadable':
      return () => ({ kind: 'unknown', why: "spec.shale.fleetLock can't be read" });
    case 'named':
      return (name) => {
        const node = caches.nodes.get(name);
        return node === undefined
          ? { kind: 'asking' }
          : slots.stateOf(pool, name, fleetLockId(node), fleetLock.lock);
      };
  }
}
