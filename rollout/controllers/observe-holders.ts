import type { Node } from '../../api/kubernetes.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { Caches } from '../caches.ts';
import { diskHolder } from '../gates/cordoned.ts';
import { holdersOf } from '../gates/gates.ts';
import type { Hold } from '../gates/hold.ts';
import type { MachineLookup, MaintenanceLookup } from '../node-claims.ts';
import type { NodeLeases } from '../node-leases.ts';

export interface HolderParts {
  readonly leases: Pick<NodeLeases, 'holding'>;
  readonly machines: Pick<MachineLookup, 'known' | 'isDeleting'>;
  readonly maintenances: Pick<MaintenanceLookup, 'nodes'>;
  /** ms since the epoch. */
  readonly now: () => number;
}

/** ms; no event tells that a NodeMaintenance, another's lease or a planned maintenance ends. */
export const HELD_RETRY = 30_000;

/**
 * @returns who keeps the disk of a node as it is; undefined where nobody does. What was last reported to the daemon
 *   (spec.heldBy) counts as well: it would not carry anything out. @throws ApiError
 */
export async function diskHolderOfNode(
  parts: HolderParts & { readonly caches: Pick<Caches, 'nodes'> },
  { metadata, spec }: MachineConfigNode,
  signal: AbortSignal,
): Promise<string | undefined> {
  const node = parts.caches.nodes.get(metadata.name);
  if (node === undefined || spec.heldBy !== undefined) return spec.heldBy;
  return diskHolder(await holdersOfNode(parts, node, signal))?.message;
}

/**
 * Who else holds a node, for the controllers of single nodes. A pass over a pool reads it for all of its nodes
 * (observe-pool.ts).
 *
 * @returns in the order in which they matter. @throws ApiError when NodeMaintenances or Machines can't be read.
 */
export async function holdersOfNode(
  { leases, machines, maintenances, now }: HolderParts,
  node: Node,
  signal: AbortSignal,
): Promise<readonly Hold[]> {
  const { name } = node.metadata;
  const inMaintenance = (await maintenances.nodes(signal)).has(name);
  // Before it is uncordoned. Of others the passes over pools read what matters.
  const isRead = node.spec?.unschedulable === true;
  const machineDeleting = isRead ? await machines.isDeleting(node, signal) : machines.known(node);
  const lease = leases.holding(name);
  return holdersOf({ node, lease, inMaintenance, machineDeleting }, now());
}
