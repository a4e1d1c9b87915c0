import { annotations } from '../../api/names.ts';
import { CORDONED } from '../gates/cordoned.ts';
import { NODE_MAINTENANCE } from '../gates/node-maintenance.ts';
import { PLANNED_MAINTENANCE } from '../gates/planned-maintenance.ts';
import { POWERED_OFF } from '../gates/powered-off.ts';
import { unavailableBecause } from './choose-nodes.ts';
import type { NodeState } from './node-state.ts';

/** A node that the rollout has not taken out of service, and that takes one of maxUnavailable. */
export interface SlotTaker {
  readonly name: string;
  readonly why: string;
  /** What a person does to bring it back, as a clause. */
  readonly wayBack: string;
}

/** @returns undefined for a node that takes none, or that the rollout itself disrupts. */
export function slotTaker(node: NodeState): SlotTaker | undefined {
  const why = unavailableBecause(node);
  return why === undefined ? undefined : { name: node.name, why, wayBack: wayBack(node) };
}

/** @returns what a person does so that a node that is held, failed or down takes part again. */
export function wayBack({ name, holders, progress, failedAtTarget, schedulable, ready }: NodeState): string {
  const [holder] = holders;
  switch (holder?.reason) {
    case PLANNED_MAINTENANCE:
      return `to end it: shale maintenance end ${name}`;
    case POWERED_OFF:
      return `power the machine on, and kubectl annotate node ${name} ${annotations.poweredOff}-`;
    case NODE_MAINTENANCE:
      return `delete the NodeMaintenance of node ${name}`;
    case CORDONED:
      return `kubectl uncordon ${name}`;
    case undefined:
      break;
    default:
      return 'wait until that has ended';
  }
  if (progress.kind === 'degraded')
    return failedAtTarget ? `fix the node and run shale retry ${name}` : `see shale status ${name}`;
  return !schedulable && ready
    ? `kubectl uncordon ${name}`
    : `look at its kubelet: kubectl describe node ${name}`;
}

/** Nodes named in the sentence; the rest is counted. */
const NAMED = 3;

/** @returns that nothing can start, because of whom, and what would change it: for a condition or a screen. */
export function formatSlotsTaken(takers: readonly Pick<SlotTaker, 'name' | 'why' | 'wayBack'>[]): string {
  const [first, ...others] = takers;
  const raise = 'or raise maxUnavailable';
  if (first === undefined) return `no node can start: maxUnavailable is used up; ${raise}`;
  if (others.length === 0)
    return `no node can start: node ${first.name} uses up maxUnavailable: ${first.why}; ${first.wayBack}; ${raise}`;
  const named = takers.slice(0, NAMED).map(({ name, why, wayBack: way }) => `${name} (${why}; ${way})`);
  const more = takers.length > NAMED ? ` and ${takers.length - NAMED} more` : '';
  return `no node can start: ${takers.length} nodes use up maxUnavailable: ${named.join(', ')}${more}; bring one back, ${raise}`;
}
