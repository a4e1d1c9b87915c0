import { MACHINE_CONFIGURATION } from '../api/names.ts';
import type { Caches } from '../rollout/caches.ts';
import { FLEETLOCK_KEY } from '../rollout/gates/fleet-lock-slots.ts';
import { nodeOfLease } from '../rollout/node-leases.ts';
import type { Membership } from '../rollout/pools/membership.ts';
import { SERVICES_KEY } from './observe.ts';

/** What has keys to work on, beside its own. */
interface Known {
  readonly caches: {
    readonly [Kind in 'pools' | 'nodes' | 'machineConfigNodes' | 'leases']: Pick<Caches[Kind], 'list'>;
  };
  readonly membership: Pick<Membership, 'wake' | 'poolOf'>;
}

/** @returns for each controller of rollout/ what names all of its keys. */
export function keysOfControllers({ caches, membership }: Known) {
  const pools = () => caches.pools.list().map(({ metadata }) => metadata.name);
  const nodes = () => caches.machineConfigNodes.list().map(({ metadata }) => metadata.name);
  // What a node leaves that was deleted is its lease, or its MachineConfigNode.
  const known = () => [
    ...nodes(),
    ...caches.nodes.list().map(({ metadata }) => metadata.name),
    ...caches.leases.list().flatMap(({ metadata }) => nodeOfLease(metadata.name) ?? []),
  ];
  return {
    // A pass leaves out nodes that need no attention.
    pools: () => {
      for (const { metadata } of caches.nodes.list()) membership.wake(metadata.name);
      return pools();
    },
    finish: nodes,
    rendering: pools,
    services: () => [SERVICES_KEY],
    policy: () => [MACHINE_CONFIGURATION],
    certificates: nodes,
    pinnedImages: nodes,
    fleetLock: () => [FLEETLOCK_KEY],
    annotations: nodes,
    departed: () => new Set(known().filter((name) => membership.poolOf(name) === undefined)),
  } as const;
}
