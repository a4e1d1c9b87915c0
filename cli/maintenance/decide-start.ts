import type { Node } from '../../api/kubernetes.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { annotations } from '../../api/names.ts';
import { flagOn } from '../../api/node-flag.ts';
import { decideLease } from '../../cluster/lease.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import { formatPoweredOff } from '../../rollout/gates/powered-off.ts';
import { defaultRolloutOptions } from '../../rollout/options.ts';
import { progressOf } from '../../rollout/pools/progress.ts';
import { endOfOthers, flagOf, isMaintenanceHolder, type MaintenanceObservation } from './node-access.ts';

export type StartDecision =
  | { readonly kind: 'go' }
  /** It is possible, after the user has confirmed it. */
  | { readonly kind: 'confirm'; readonly why: string }
  /** Another holder has the exclusive right to disrupt the node: the only option is to wait. */
  | { readonly kind: 'blocked'; readonly why: string };

/**
 * Decides whether a maintenance may start.
 *
 * @param holder identity of the lease's future holder. @param now ms since the epoch.
 */
export function decideStart(
  { node, lease, machineConfigNode, pool }: MaintenanceObservation,
  holder: string,
  now: number,
): StartDecision {
  const decision = decideLease(lease, holder, now, endOfOthers);
  if (decision.kind === 'renew') return { kind: 'go' };
  if (decision.kind === 'taken') return { kind: 'blocked', why: blockedBy(decision, machineConfigNode) };
  const progress =
    machineConfigNode === undefined
      ? undefined
      : progressOf(machineConfigNode.spec, machineConfigNode.status).kind;
  // A grant outlives the lease when the operator dies; the daemon may still act on it.
  if (machineConfigNode?.spec.grant !== undefined && progress !== 'updated') {
    return {
      kind: 'blocked',
      why: `it has permission to update to ${machineConfigNode.spec.configVersion.desired}`,
    };
  }
  const reasons = [
    ...rolloutOf(pool, progress),
    ...flagOfAnother(node, holder),
    ...poweredOffByAnother(node, holder),
  ];
  return reasons.length === 0 ? { kind: 'go' } : { kind: 'confirm', why: reasons.join('; ') };
}

function blockedBy(
  { holder, untilMs }: { readonly holder: string; readonly untilMs: number },
  machineConfigNode: MachineConfigNode | undefined,
): string {
  if (holder === defaultRolloutOptions.leases.holder) {
    return `it is being updated to ${machineConfigNode?.spec.configVersion.desired ?? 'its configuration'}`;
  }
  const until = Number.isFinite(untilMs) ? ` until ${new Date(untilMs).toISOString()}` : '';
  return `${isMaintenanceHolder(holder) ? 'it is in maintenance: ' : ''}its lease is held by ${holder}${until}`;
}

function rolloutOf(pool: MachineConfigPool | undefined, progress: string | undefined): string[] {
  if (pool === undefined || !conditionIsTrue(pool.status?.conditions, 'Updating') || progress === 'updated')
    return [];
  const { name } = pool.metadata;
  return [
    `a rollout of pool ${name} is in progress; until the maintenance ends, the rollout skips the node and counts it as unavailable`,
  ];
}

function flagOfAnother(node: Node, holder: string): string[] {
  const flag = flagOf(node);
  if (flag === undefined || holder.endsWith(`/${flag.by}`)) return [];
  const by = flag.by === '' ? '' : ` by ${flag.by}`;
  return [`it is flagged for maintenance${by}${flag.reason === '' ? '' : `: ${flag.reason}`}`];
}

function poweredOffByAnother(node: Node, holder: string): string[] {
  const off = formatPoweredOff(node);
  const by = flagOn(node, annotations.poweredOff)?.flag?.by ?? '';
  return off === undefined || holder.endsWith(`/${by}`) ? [] : [`it was ${off}`];
}
