import { annotations } from '../../api/names.ts';
import { acquireLease, releaseLease } from '../../cluster/lease.ts';
import { leaseNameOf } from '../../rollout/node-leases.ts';
import { CommandError } from '../command-line/exit-codes.ts';
import { print } from '../command-line/output.ts';
import {
  confirm,
  flagOf,
  isMaintenanceHolder,
  maintenanceHolder,
  type NodeAccess,
  patchNode,
  readLease,
  readNode,
} from './node-access.ts';

/** s; the lease is held only for the few requests that restore the node. */
const HOLD_SECONDS = 60;

/**
 * Restores a node to its state before the maintenance: schedulable if it was, without the flag and the lease.
 *
 * @throws {CommandError} when another person started it and the user doesn't confirm, or another holder has the lease now.
 */
export async function endMaintenance(
  access: NodeAccess,
  { by, yes }: { readonly by: string; readonly yes: boolean },
): Promise<void> {
  const { client, node, leaseNamespace: namespace, signal } = access;
  const [flag, lease] = [flagOf(await readNode(access)), await readLease(access)];
  const holderNow = lease?.spec?.holderIdentity ?? '';
  if (flag === undefined && !isMaintenanceHolder(holderNow)) {
    print(`node ${node}: not in maintenance`);
    return;
  }
  if (flag !== undefined && flag.by !== by && flag.by !== '' && !yes) await confirmEnd(access, flag.by);
  const holder = isMaintenanceHolder(holderNow) ? holderNow : maintenanceHolder(flag?.by ?? by);
  const name = leaseNameOf(node);
  const outcome = await acquireLease(
    client,
    { namespace, name, holder, durationSeconds: HOLD_SECONDS },
    signal,
  );
  if (!outcome.held) {
    throw new CommandError(
      `node ${node}: the maintenance is already over, and its lease is now held by ${outcome.holder}; run this again once the lease is released`,
    );
  }
  const restored = await patchNode(access, (current) => ({
    metadata: { annotations: { [annotations.plannedMaintenance]: null } },
    ...(flagOf(current)?.uncordon === true ? { spec: { unschedulable: null } } : {}),
  }));
  await releaseLease(client, { namespace, name, holder }, signal);
  const state = restored.spec?.unschedulable === true ? 'cordoned, as before' : 'schedulable';
  print(`node ${node}: maintenance ended, ${state}`);
}

async function confirmEnd({ node, signal }: NodeAccess, by: string): Promise<void> {
  const answer = await confirm(`node ${node}: its maintenance was started by ${by}. End it?`, signal);
  if (answer === true) return;
  throw new CommandError(
    answer === false
      ? 'no changes were made'
      : `node ${node}: its maintenance was started by ${by}; use --yes to end it`,
  );
}
