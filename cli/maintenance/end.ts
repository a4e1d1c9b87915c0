import type { Lease, Node } from '../../api/kubernetes.ts';
import { annotations, POWERED_OFF_LEASE_HOLDER } from '../../api/names.ts';
import { flagOn } from '../../api/node-flag.ts';
import { acquireLease, leaseEnd, releaseLease } from '../../cluster/lease.ts';
import { formatPoweredOff } from '../../rollout/gates/powered-off.ts';
import { leaseNameOf } from '../../rollout/node-leases.ts';
import { isReady } from '../../rollout/pools/node-availability.ts';
import { requireYes } from '../command-line/confirm.ts';
import { CommandError } from '../command-line/exit-codes.ts';
import { print } from '../command-line/output.ts';
import {
  endOfOthers,
  flagOf,
  getNode,
  isMaintenanceHolder,
  maintenanceHolder,
  type NodeAccess,
  patchCurrentNode,
  readLease,
} from './node-access.ts';

/** s; the lease is held only for the few requests that restore the node. */
const HOLD_SECONDS = 60;

/**
 * Restores a node to its state before the maintenance: schedulable if it was, without the flag and the lease.
 *
 * @throws {CommandError} when another person started it and the user doesn't confirm, when another holder has the lease
 *   now, or when the flag was changed in the meantime.
 */
export async function endMaintenance(
  access: NodeAccess,
  { by, yes }: { readonly by: string; readonly yes: boolean },
): Promise<void> {
  const { client, node, leaseNamespace: namespace, signal } = access;
  const read = await getNode(access);
  const [flag, lease] = [flagOf(read), await readLease(access)];
  const holderNow = lease?.spec?.holderIdentity ?? '';
  if (flag === undefined && !isMaintenanceHolder(holderNow)) {
    if (formatPoweredOff(read) !== undefined) return endPowerOff(access, read, { by, yes });
    print(`node ${node}: not in maintenance`);
    return;
  }
  if (flag?.poweredOff === true && !yes) checkRuns(read);
  if (flag !== undefined && !yes)
    await confirmEnd(access, 'its maintenance was started', { by, other: flag.by });
  const holder = isMaintenanceHolder(holderNow) ? holderNow : maintenanceHolder(flag?.by ?? by);
  const name = leaseNameOf(node);
  // A lease that lasts is left as it is: it may belong to a maintenance that was started in the meantime.
  const isOwn = lease !== undefined && holderNow === holder && remainsHeld(lease);
  const request = { namespace, name, holder, durationSeconds: HOLD_SECONDS };
  const outcome = isOwn
    ? { acquired: true as const }
    : await acquireLease(client, request, signal, { endOf: endOfOthers });
  if (!outcome.acquired) {
    throw new CommandError(
      `node ${node}: the maintenance is already over, and its lease is now held by ${outcome.holder}; run this again once the lease is released`,
    );
  }
  const restored = await patchCurrentNode(access, (current) => restore(node, read, current));
  await releaseLease(client, { namespace, name, holder }, signal);
  const state = restored.spec?.unschedulable === true ? 'cordoned, as before' : 'schedulable';
  print(`node ${node}: maintenance ended, ${state}`);
}

function remainsHeld(lease: Lease): boolean {
  return leaseEnd(lease) - Date.now() >= HOLD_SECONDS * 1000;
}

/**
 * @param read the node when the user decided to end its maintenance.
 * @returns the merge patch that restores the node. @throws {CommandError} when its flag has changed since.
 */
function restore(name: string, read: Node, current: Node): object {
  const flag = ({ metadata }: Node) => metadata.annotations?.[annotations.plannedMaintenance];
  if (flag(current) !== flag(read)) {
    throw new CommandError(
      flag(current) === undefined
        ? `node ${name}: its maintenance was ended in the meantime`
        : `node ${name}: another maintenance was started in the meantime; run this again to end that one`,
    );
  }
  const poweredOff = flagOf(current)?.poweredOff === true ? { [annotations.poweredOff]: null } : {};
  return {
    metadata: { annotations: { [annotations.plannedMaintenance]: null, ...poweredOff } },
    ...(flagOf(current)?.uncordon === true ? { spec: { unschedulable: null } } : {}),
  };
}

/**
 * Ends what somebody marked as switched off outside of a maintenance. Nothing else of theirs is on the node, so that
 * it doesn't matter who has its lease.
 */
async function endPowerOff(
  access: NodeAccess,
  read: Node,
  { by, yes }: { readonly by: string; readonly yes: boolean },
): Promise<void> {
  const { client, node, leaseNamespace: namespace, signal } = access;
  const mark = ({ metadata }: Node) => metadata.annotations?.[annotations.poweredOff];
  const other = flagOn(read, annotations.poweredOff)?.flag?.by ?? '';
  if (!yes) checkRuns(read);
  if (!yes) await confirmEnd(access, 'it was switched off', { by, other });
  await patchCurrentNode(access, (current) => {
    if (mark(current) === mark(read))
      return { metadata: { annotations: { [annotations.poweredOff]: null } } };
    throw new CommandError(`node ${node}: who switched it off has changed in the meantime; run this again`);
  });
  const request = { namespace, name: leaseNameOf(node), holder: POWERED_OFF_LEASE_HOLDER };
  await releaseLease(client, request, signal);
  print(`node ${node}: no longer marked as switched off`);
}

/** @throws {CommandError} for a machine that is still off. */
function checkRuns(node: Node): void {
  if (isReady(node)) return;
  throw new CommandError(
    `node ${node.metadata.name}: it was powered off and is not Ready; power it on and run this again, or use --yes`,
  );
}

/** @throws {CommandError} when another person did that, and the user doesn't confirm. */
async function confirmEnd(
  { node, signal }: NodeAccess,
  what: string,
  { by, other }: { readonly by: string; readonly other: string },
): Promise<void> {
  if (other === by || other === '') return;
  const refusal = `node ${node}: ${what} by ${other}; use --yes to end it`;
  await requireYes(`node ${node}: ${what} by ${other}. End it?`, refusal, signal);
}
