import { shortList } from '../../api/plural.ts';
import { CORDONED } from '../gates/cordoned.ts';
import { NODE_MAINTENANCE } from '../gates/node-maintenance.ts';
import { PLANNED_MAINTENANCE } from '../gates/planned-maintenance.ts';
import { POWERED_OFF } from '../gates/powered-off.ts';
import { unavailableBecause } from './choose-nodes.ts';
import type { FullDomain } from './failure-domains.ts';
import type { NodeState } from './node-state.ts';

/** A node that the rollout has not taken out of service, and that takes one of maxUnavailable. */
export interface SlotTaker {
  readonly name: string;
  readonly why: string;
  /** What a person does to bring it back, as a clause. */
  readonly remedy: string;
}

/** @returns undefined for a node that takes none, or that the rollout itself disrupts. */
export function slotTaker(node: NodeState): SlotTaker | undefined {
  const why = unavailableBecause(node);
  return why === undefined ? undefined : { name: node.name, why, remedy: remedy(node) };
}

/** @returns what a person does so that a node that is held, failed or down takes part again. */
export function remedy({
  name,
  claims: { holders },
  update: { progress, failedAtTarget },
  availability: { schedulable, ready },
}: NodeState): string {
  const [holder] = holders;
  switch (holder?.reason) {
    case PLANNED_MAINTENANCE:
      return `to end it: shale maintenance end ${name}`;
    case POWERED_OFF:
      return `power the machine on, and run shale maintenance end ${name}`;
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

/**
 * @param all nodes that take a slot.
 * @param domains the failure domains without room; none: the pool's maxUnavailable itself is used up.
 * @returns that nothing can start, because of whom, and what would change it: for a condition or a screen.
 */
export function formatSlotsTaken(
  all: readonly Pick<SlotTaker, 'name' | 'why' | 'remedy'>[],
  domains: readonly FullDomain[] = [],
): string {
  const inDomains = new Set(domains.flatMap(({ unavailable }) => unavailable));
  const takers = domains.length === 0 ? all : all.filter(({ name }) => inDomains.has(name));
  const [first, ...others] = takers;
  const [nothing, limit] = whatIsFull([...new Set(domains.map(({ name }) => name))]);
  if (first === undefined) return `${nothing} can start: ${limit} is used up; raise it`;
  if (others.length === 0)
    return `${nothing} can start: node ${first.name} uses up ${limit}: ${first.why}; ${first.remedy}; or raise ${limit}`;
  const named = takers.map(({ name, why, remedy }) => `${name} (${why}; ${remedy})`);
  return `${nothing} can start: ${takers.length} nodes use up ${limit}: ${shortList(named, NAMED)}; bring one back, or raise ${limit}`;
}

/** @returns what can't start, and whose maxUnavailable is used up. */
function whatIsFull(domains: readonly string[]): readonly [nothing: string, limit: string] {
  if (domains.length === 0) return ['no node', 'maxUnavailable'];
  const limit = domains.length === 1 ? "the domain's maxUnavailable" : "the domains' maxUnavailable";
  return [`no node of ${shortList(domains, NAMED, ' or ')}`, limit];
}
