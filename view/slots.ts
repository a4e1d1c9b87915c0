import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import { maxUnavailable } from '../api/max-unavailable.ts';
import { unsupportedBecause } from '../predict/node/predict-node.ts';
import { poolHold } from '../rollout/gates/gates.ts';
import { fullFor, occupiedBy, plansDisruption } from '../rollout/pools/choose-nodes.ts';
import { type FullDomain, failureDomainsOf } from '../rollout/pools/failure-domains.ts';
import { isNew } from '../rollout/pools/node-availability.ts';
import { stateNameOf } from '../rollout/pools/node-state.ts';
import { formatSlotsTaken, slotTaker } from '../rollout/pools/slot-takers.ts';
import { conditionOf } from './conditions.ts';
import { settingsOfPool } from './holds.ts';
import { objectNamed } from './named.ts';
import { type NodesCluster, nodeStateOf } from './node-source.ts';
import { nodesOfPool } from './observed-cluster.ts';

/**
 * @param now ms since the epoch.
 * @returns that no node of the pool, or of failure domains of it, can be drained or rebooted, and what would change it,
 *   where nodes that others have taken out of service use up maxUnavailable; undefined while there is a free slot.
 */
export function slotsTakenIn(
  pool: MachineConfigPool,
  cluster: NodesCluster,
  now: number,
): string | undefined {
  const { states, takers, most, domains } = slotsOf(pool, cluster, now);
  if (takers.length === 0) return undefined;
  if (takers.length >= most) return formatSlotsTaken(takers);
  const taken = new Set(takers.map(({ name }) => name));
  const full = states
    .filter((state) => !taken.has(state.name) && !isNew(state))
    .flatMap(({ name }) => domains?.full(name, taken) ?? []);
  return full.length === 0 ? undefined : formatSlotsTaken(takers, full);
}

/** What a node waits for in its failure domain. */
export interface DomainWait extends FullDomain {
  /** Nodes that the rollout has not taken out of service are enough for that. */
  readonly byOthers: true | undefined;
}

/** The waits of a cluster, as it was observed, at the moment of the last look at it. */
const waitsOf = new WeakMap<
  NodesCluster,
  { readonly now: number; readonly waits: ReadonlyMap<string, DomainWait> }
>();

/** @param now ms since the epoch. @returns what nodes wait for whose failure domain has no room, by node. */
export function domainWaits(cluster: NodesCluster, now: number): ReadonlyMap<string, DomainWait> {
  const known = waitsOf.get(cluster);
  if (known?.now === now) return known.waits;
  const waits = new Map(cluster.pools.flatMap((pool) => waitsIn(pool, cluster, now)));
  waitsOf.set(cluster, { now, waits });
  return waits;
}

/** Nothing starts in a pool that is closed or has stopped, whichever domains have room. */
function waitsIn(
  pool: MachineConfigPool,
  cluster: NodesCluster,
  now: number,
): readonly (readonly [string, DomainWait])[] {
  const settings = settingsOfPool(pool);
  const updating = conditionOf(pool.status?.conditions, 'Updating');
  const isClosed = poolHold({ pool, settings }) !== undefined || updating?.reason === 'RolloutStopped';
  if (settings.failureDomains === undefined || isClosed) return [];
  const { states, takers, most, domains } = slotsOf(pool, cluster, now);
  const occupied = occupiedBy(states.filter(({ claims: { away } }) => away?.kind !== 'switched-off'));
  const byOthers = new Set(takers.map(({ name }) => name));
  return states
    .filter((state) => stateNameOf(state) === 'staged' && plansDisruption(state) && !isNew(state))
    .flatMap(({ name }): [string, DomainWait][] => {
      const full = fullFor(name, occupied, { maxUnavailable: most, domains });
      if (typeof full !== 'object') return [];
      const others = full.unavailable.filter((each) => byOthers.has(each)).length;
      return [[name, { ...full, byOthers: others >= full.most || undefined }]];
    });
}

/** The nodes of a pool, and who takes its slots. A node without a MachineConfigNode takes none that is known here. */
function slotsOf(pool: MachineConfigPool, cluster: NodesCluster, now: number) {
  const states = nodesOfPool(cluster, pool.metadata.name)
    .filter((node) => unsupportedBecause(node) === undefined)
    .map((node) => nodeStateOf(node, cluster, now));
  const nodes = states.flatMap(({ name }) => {
    const node = objectNamed(cluster.nodes, name);
    return node === undefined ? [] : [{ node }];
  });
  const { drivenBy, failureDomains } = settingsOfPool(pool);
  const inService = states.filter((state) => !isNew(state)).length;
  return {
    states,
    takers: states.map(slotTaker).filter((taker) => taker !== undefined),
    // Where Cluster API decides which nodes go, it has a maxUnavailable of its own.
    most:
      drivenBy === undefined ? maxUnavailable(pool.spec.maxUnavailable, inService) : Number.POSITIVE_INFINITY,
    domains: failureDomainsOf(failureDomains, nodes),
  };
}
