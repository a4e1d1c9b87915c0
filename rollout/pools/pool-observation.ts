import type { Node } from '../../api/kubernetes.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { WhyIrreconcilable } from '../../predict/node/irreconcilable-nodes.ts';
import type { Hold, HoldState } from '../gates/hold.ts';
import type { TargetBases } from '../gates/vulnerabilities.ts';
import { longestBake } from '../gates/waves.ts';
import type { LeaseHolding } from '../node-leases.ts';
import type { NodeTarget } from './node-target.ts';
import type { PoolRecord } from './pool-record.ts';
import { assignedSettings, type PoolSettings } from './pool-settings.ts';
import type { PoolTarget } from './pool-target.ts';

export interface ObservedNode {
  readonly node: Node;
  readonly machineConfigNode: MachineConfigNode | undefined;
  readonly lease: LeaseHolding;
  readonly inMaintenance: boolean;
  readonly machineDeleting: boolean;
}

export interface PoolObservation {
  readonly pool: MachineConfigPool;
  readonly settings: PoolSettings;
  readonly target: PoolTarget;
  readonly policyDigest: string | undefined;
  /** Version of the keys that images must be signed with; undefined until they are published. */
  readonly imageSigningKeys: string | undefined;
  /** Compares what a config asks with what a node runs. */
  readonly whyIrreconcilable: WhyIrreconcilable;
  /** The pool's nodes without the settled ones. */
  readonly nodes: readonly ObservedNode[];
  /** Absent: none. */
  readonly settled?: SettledCount;
  /**
   * Finds the target of an automatic rollback, if one is known that worked; it asks every node, so only a
   * rollout that has stopped calls it. Absent if the pool doesn't roll back automatically.
   */
  readonly lastGood?: () => NodeTarget | undefined;
  /** What the pool's nodes may run; absent: nothing is recorded. */
  readonly record?: PoolRecord;
  /**
   * Finds what the pool waits for of the pools that it depends on; only asked where a node could start. Absent if it
   * depends on none. The parameter: ms since the epoch.
   */
  readonly awaitedPools?: ((now: number) => Hold | undefined) | undefined;
  /** Asks whether alerts hold updates back; only where a node could start. Absent if the pool names none. */
  readonly alerts?: () => HoldState;
  /** The same of queries. */
  readonly queries?: () => HoldState;
  /** What the target's build records of its base images. Absent in standard mode. */
  readonly targetBases?: TargetBases | undefined;
  /**
   * Finds why a node that votes must not be disrupted now, while further nodes are about to be. Absent where no such
   * node could start or is being drained.
   */
  readonly quorum?: ((node: string, withoutThese: readonly string[]) => Hold | undefined) | undefined;
  /** Asks for a node's slot of the lock service; only where it could reboot now. Absent if the pool names none. */
  readonly fleetLock?: ((node: string) => HoldState) | undefined;
}

/**
 * Nodes that are counted without being read: each runs the target of its pool and is in service, and nothing is under
 * way.
 */
export interface SettledCount {
  readonly nodes: number;
  readonly architectures: ReadonlySet<string>;
}

export const noneSettled: SettledCount = { nodes: 0, architectures: new Set() };

/**
 * @returns everything about a pool that a settled node depends on, as one text: when it changes, each node has to be
 *   looked at again.
 */
export function fingerprintOf({
  pool,
  target,
  policyDigest,
  imageSigningKeys,
  settings,
}: Pick<PoolObservation, 'pool' | 'target' | 'policyDigest' | 'imageSigningKeys' | 'settings'>): string {
  const desired = 'target' in target ? target.target : undefined;
  const same = 'sameContent' in target ? [...target.sameContent].sort() : [];
  const awaits = 'awaits' in target;
  return JSON.stringify([
    pool.metadata.uid,
    target.kind,
    desired,
    same,
    awaits,
    policyDigest,
    imageSigningKeys,
    settlesAfter(settings),
    assignedSettings(settings),
    settings.failureDomains,
  ]);
}

/** @returns ms that a node has to run the target before it is only counted: by then it has baked, too. */
export function settlesAfter({ soak, waves }: Pick<PoolSettings, 'soak' | 'waves'>): number {
  return Math.max(soak, longestBake(waves));
}
