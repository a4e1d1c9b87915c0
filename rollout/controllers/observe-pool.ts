import type { Node } from '../../api/kubernetes.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { PARALLEL_NODES } from '../act/carry-out.ts';
import type { Caches } from '../caches.ts';
import { inParallel } from '../in-parallel.ts';
import type { MachineLookup, MaintenanceLookup } from '../node-claims.ts';
import type { NodeLeases } from '../node-leases.ts';
import type { RolloutOptions } from '../options.ts';
import type { Membership, PoolMembers } from '../pools/membership.ts';
import { isReady } from '../pools/node-availability.ts';
import { hasTarget } from '../pools/node-target.ts';
import type { DecidedOn } from '../pools/pool-conditions.ts';
import {
  fingerprintOf,
  type ObservedNode,
  type PoolObservation,
  type SettledCount,
} from '../pools/pool-observation.ts';
import type { PoolRecord } from '../pools/pool-record.ts';
import type { PoolRollback } from '../pools/pool-rollback.ts';
import { nodeTarget, type PoolTarget } from '../pools/pool-target.ts';
import { isRenderingDue } from './observe-dependencies.ts';
import { type GateParts, gateInputsOf } from './observe-gates.ts';
import { awaitsGrant, observeQuorum } from './observe-quorum.ts';
import { RulesObserver } from './observe-rules.ts';
import { observeTarget, type TargetParts } from './observe-target.ts';

/** What one pass over a pool observed. */
export interface ObservedPool extends PoolObservation {
  readonly record: PoolRecord;
  readonly rollback: PoolRollback;
  readonly settled: SettledCount;
  readonly members: PoolMembers;
  /** When the pass began, for the nodes that settle with it. */
  readonly moment: number;
  readonly decided: DecidedOn;
}

export interface PoolObserverParts extends TargetParts, Pick<GateParts, 'lookups' | 'slots'> {
  readonly client: ApiClient;
  readonly caches: Caches;
  readonly membership: Membership;
  readonly leases: NodeLeases;
  readonly machines: MachineLookup;
  readonly maintenances: Pick<MaintenanceLookup, 'nodes'>;
  readonly options: Pick<RolloutOptions, 'namespace' | 'rendering' | 'hosts' | 'pace'>;
}

/** Observes a pool: its target, its settings, and those of its nodes that something may have to be done about. */
export class PoolObserver {
  readonly #parts: PoolObserverParts;
  readonly #rules: RulesObserver;

  constructor(parts: PoolObserverParts) {
    this.#parts = parts;
    this.#rules = new RulesObserver(parts);
  }

  /** @throws ApiError when Machines, NodeMaintenances or the pods of a quorum can't be read. */
  async observe(pool: MachineConfigPool, signal: AbortSignal): Promise<ObservedPool> {
    const { membership, machines } = this.#parts;
    const members = membership.membersOf(pool.metadata.name);
    const observed = observeTarget(pool, members, this.#parts);
    const { images, ...aim } = observed;
    const seen = { pool, ...aim, rules: this.#rules.rulesOf(pool, images.policyDigest) };
    const { active, settled } = members.divide(fingerprintOf(seen));
    const moment = members.now();
    const inMaintenance = await this.#inMaintenance(active, aim.target, signal);
    const disturbed = [...inMaintenance].filter((node) => members.isSettled(node));
    const nodes = this.#read([...active, ...disturbed].toSorted());
    const leaving = nodes.filter(({ node }) => mayBeLeaving(node));
    await inParallel(leaving, PARALLEL_NODES, async ({ node }) => {
      await machines.isDeleting(node, signal);
    });
    return {
      ...seen,
      gateInputs: {
        ...gateInputsOf(pool, observed, this.#parts),
        quorum: await observeQuorum(active, aim.settings, this.#parts, signal),
      },
      members,
      moment,
      decided: { generation: pool.metadata.generation, renderingDue: isRenderingDue(pool, this.#parts) },
      settled: { ...settled, nodes: settled.nodes - disturbed.length },
      nodes: nodes.map((member) => ({
        ...member,
        inMaintenance: inMaintenance.has(member.node.metadata.name),
        machineDeleting: machines.known(member.node),
      })),
    };
  }

  #read(names: readonly string[]): Pick<ObservedNode, 'node' | 'machineConfigNode' | 'lease'>[] {
    const { caches, leases } = this.#parts;
    return names.flatMap((name) => {
      const node = caches.nodes.get(name);
      const machineConfigNode = caches.machineConfigNodes.get(name);
      return node === undefined ? [] : [{ node, machineConfigNode, lease: leases.holding(name) }];
    });
  }

  /** Costs a request, so it is read only where a node may be updated next, or may be unavailable for this reason. */
  async #inMaintenance(
    active: readonly string[],
    target: PoolTarget,
    signal: AbortSignal,
  ): Promise<ReadonlySet<string>> {
    const { nodes, machineConfigNodes } = this.#parts.caches;
    const matters = active.some((name) => {
      const [node, of] = [nodes.get(name), machineConfigNodes.get(name)];
      return node !== undefined && (awaitsTarget(of, target) || mayBeLeaving(node));
    });
    return matters ? await this.#parts.maintenances.nodes(signal) : new Set();
  }
}

/** Whether a node may be given something to write, or may be disrupted: not while it is in maintenance. */
function awaitsTarget(of: MachineConfigNode | undefined, target: PoolTarget): boolean {
  const desired = nodeTarget(target, of);
  if (of === undefined) return desired !== undefined;
  return awaitsGrant(of) || (desired !== undefined && !hasTarget(of.spec, desired));
}

/**
 * A Machine that is deleted, or a node in maintenance, is cordoned first or stops being Ready. Of a node that Shale has
 * cordoned, neither shows: it may be deleted before its grant.
 */
function mayBeLeaving(node: Node): boolean {
  return node.spec?.unschedulable === true || !isReady(node);
}
