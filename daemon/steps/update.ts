import type { UpdatePlan } from '../../api/machine-config-node.ts';
import type { Current } from '../records/current.ts';
import { isFor, type Target } from './target.ts';

/** An update as it was worked out: what it asks of the node, and what the node runs once it is over. */
export interface Update {
  readonly plan: UpdatePlan;
  readonly next: Current;
}

/** An update that is on the disk and waits for its grant. */
export interface PreparedUpdate extends Update {
  /** The policies that its actions follow: under others it has to be worked out anew. */
  readonly policyDigest: string | undefined;
  /** Whether the pool allowed soft reboots then. */
  readonly softRebootAllowed: boolean;
}

/** @returns whether the update leads to this target and no other. */
export function leadsTo({ plan, next }: Update, target: Target): boolean {
  if (!isFor(plan, target) || next.mode !== target.mode) return false;
  const osImage = target.mode === 'Standard' ? (target.osImage ?? '') : '';
  return osImage === '' || next.baseImage === osImage;
}

/** @returns whether the update ends with a reboot. */
export function reboots({ plan }: { readonly plan: Pick<UpdatePlan, 'actions'> }): boolean {
  return plan.actions.some(({ type }) => type === 'Reboot');
}

/** @returns the same update by way of a reboot. @param why in words, for the status. */
export function byReboot<T extends Update>(update: T, why: string): T {
  return { ...update, plan: { ...update.plan, actions: [{ type: 'Reboot' }], source: why } };
}
