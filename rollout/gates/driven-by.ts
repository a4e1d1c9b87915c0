import { formatDriver, formatMachineOwner, isSameOwner, type MachineOwner } from '../../api/machine-owner.ts';
import { annotations } from '../../api/names.ts';
import type { NodeClaims } from '../pools/claims.ts';
import type { NodeAvailability } from '../pools/node-availability.ts';
import type { Hold } from './hold.ts';

export const AWAITING_CLUSTER_API = 'AwaitingClusterApi';

/** What of a node shows whether Cluster API has handed it over. */
interface Handed {
  readonly claims: Pick<NodeClaims, 'handover'>;
  readonly availability: Pick<NodeAvailability, 'startup'>;
}

/** A pool, as far as the gate asks. */
export interface Driven {
  readonly settings: { readonly drivenBy: MachineOwner | undefined };
}

/**
 * Cluster API decides which nodes of the pool are updated and when (spec.shale.drivenBy): nothing starts on a node that
 * the pool's owner has not handed over, whatever it is for. A rollback, a requested reboot and the reboot after a live
 * update that failed wait, too: Cluster API counts the Machines that it has handed over as unavailable, and no others.
 *
 * A node that has had the startup taint ever since it registered doesn't wait. Its Machine was created as it has to be,
 * so Cluster API never hands it over, and it takes no pods before it has its config. A new node without the taint is
 * handed over by the extension (capi/decide/first-config.ts).
 *
 * A drain or reboot that has a grant is finished, and so is a live update: node-step.ts withdraws no such grant for a
 * gate. Only where a live update failed, so that the node has to reboot, the grant no longer suffices.
 */
export const drivenBy = {
  kind: 'node',
  hold: ({ settings: { drivenBy: owner } }: Driven, node: Handed): Hold | undefined => {
    if (owner === undefined || node.availability.startup?.neverServed === true) return undefined;
    const message = whyNotHandedOver(owner, node);
    return message === undefined ? undefined : { reason: AWAITING_CLUSTER_API, message };
  },
} as const;

/** @returns whether the owner that drives the pool has handed the node over. */
export function isHandedOver(owner: MachineOwner, node: Pick<Handed, 'claims'>): boolean {
  return whyNotHandedOver(owner, node) === undefined;
}

function whyNotHandedOver(
  owner: MachineOwner,
  { claims: { handover } }: Pick<Handed, 'claims'>,
): string | undefined {
  if (handover === undefined) return `${formatDriver(owner)} has not handed the node over`;
  if (handover.kind === 'unreadable')
    return `annotation ${annotations.clusterApiUpdate} of its MachineConfigNode can't be read: ${handover.why}`;
  const by = handover.update.owner;
  return isSameOwner(by, owner)
    ? undefined
    : `the node was handed over by ${formatMachineOwner(by)}, but the pool is driven by ${formatMachineOwner(owner)}`;
}
