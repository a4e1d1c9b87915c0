import { CORDONED } from '../../rollout/gates/cordoned.ts';
import { holdersOf } from '../../rollout/gates/gates.ts';
import { LEASE_HELD } from '../../rollout/gates/lease-held.ts';
import { PLANNED_MAINTENANCE } from '../../rollout/gates/planned-maintenance.ts';
import { MaintenanceLookup } from '../../rollout/node-claims.ts';
import { isTaken } from '../../rollout/node-leases.ts';
import { seenNode } from '../../view/node-source.ts';
import { unlessForbidden } from '../command-line/cluster-access.ts';
import {
  type MaintenanceObservation,
  maintenanceHolder,
  type NodeAccess,
  observeNode,
} from './node-access.ts';

/** Who else holds a node. */
interface Holders {
  /** In the order in which they matter; empty: nobody. */
  readonly reasons: readonly string[];
  /** Whom the node lease names, other than the operator; it may be the user's own maintenance. */
  readonly leaseHolder: string | undefined;
}

/** What `shale maintenance start` does to a node. */
const OWN_MAINTENANCE: readonly string[] = [LEASE_HELD, PLANNED_MAINTENANCE, CORDONED];

/**
 * @param by the user.
 * @throws {CommandError} when the node does not exist. {ApiError}
 */
export async function observeHolders(access: NodeAccess, by: string): Promise<Holders> {
  const { client, signal } = access;
  const [observed, inMaintenance] = await Promise.all([
    observeNode(access),
    unlessForbidden(new MaintenanceLookup(client, Date.now).nodes(signal)),
  ]);
  const { name } = observed.node.metadata;
  return readHolders(observed, { by, inMaintenance: inMaintenance?.has(name) === true, now: Date.now() });
}

/** @param at `by`: the user; `now`: ms since the epoch. @returns who else than the user holds the node. */
export function readHolders(
  observed: MaintenanceObservation,
  at: { readonly by: string; readonly inMaintenance: boolean; readonly now: number },
): Holders {
  const { node, lease } = observed;
  const { by, inMaintenance, now } = at;
  const seen = seenNode(node.metadata.name, { ...observed, inMaintenance }, now);
  const holds = holdersOf(seen, now);
  const leaseHolder = isTaken(seen.lease) ? lease?.spec?.holderIdentity : undefined;
  const isOwn = leaseHolder === maintenanceHolder(by);
  const others = holds.filter(({ reason }) => !isOwn || !OWN_MAINTENANCE.includes(reason));
  return { reasons: others.map(({ message }) => message), leaseHolder };
}
