import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { statesAtWork } from '../../api/node-state.ts';
import type { Condition } from '../../api/object.ts';
import { START_WAITS } from '../../rollout/gates/gates.ts';
import { remedy } from '../../rollout/pools/slot-takers.ts';
import { conditionOf, trueCondition } from '../../view/conditions.ts';
import { nodeStateOf } from '../../view/node-source.ts';
import { nodeView } from '../../view/node-view.ts';
import type { ObservedCluster } from '../../view/observed-cluster.ts';
import { adviceOn } from '../../view/retriable.ts';
import type { NodeView } from '../../view/schemas.ts';
import { slotsTakenIn } from '../../view/slots.ts';

/** Reason of `UpdatePrepared`: the target is being staged (daemon/status.ts). */
const PREPARING = 'Preparing';
/** ms; what fires because nodes reboot is over by then. */
const PATIENCE_WITH_OTHERS = 600_000;

/**
 * @param outstanding nodes of the pool that don't run its target.
 * @param members all nodes of the pool.
 * @param now ms since the epoch.
 * @returns why no node of the pool can move any more, which one, and what to do; undefined while one moves, or may.
 */
export function stuckBecause(
  pool: MachineConfigPool,
  outstanding: readonly MachineConfigNode[],
  members: readonly MachineConfigNode[],
  cluster: ObservedCluster,
  now: number,
): string | undefined {
  const viewOf = (node: MachineConfigNode) => nodeView(node, cluster, now);
  const left = outstanding.map((node) => ({ node, view: viewOf(node) }));
  if (left.length === 0 || left.some(({ node, view }) => mayMove(view, node))) return undefined;
  const failed = left.filter(({ view }) => view.state === 'degraded');
  const skipped = left.filter(({ view }) => view.obstacle !== undefined);
  if (failed.length + skipped.length === left.length) {
    const [first] = [...failed, ...skipped];
    const more = left.length === 1 ? '' : ` (and ${left.length - 1} more)`;
    const remedyOf = (node: MachineConfigNode) => remedy(nodeStateOf(node, cluster, now));
    return first && `${formatStuck(first.view, first.node, remedyOf)}${more}`;
  }
  if (conditionOf(pool.status?.conditions, 'Updating')?.reason === 'MaxUnavailableReached') {
    return members.map(viewOf).some(({ state }) => statesAtWork.has(state))
      ? undefined
      : slotsTakenIn(pool, cluster, now);
  }
  const held = trueCondition(pool.status?.conditions, 'UpdatesHeld');
  if (held === undefined) return undefined;
  return endsByItself(held, now) ? undefined : `updates are held: ${held.message}`;
}

/** A newer operator may hold updates for a reason that is not known here. */
function endsByItself({ reason, lastTransitionTime }: Condition, now: number): boolean {
  switch (START_WAITS.get(reason)) {
    case 'admin':
      return false;
    case 'others':
      return now - Date.parse(lastTransitionTime) < PATIENCE_WITH_OTHERS;
    case 'progress':
    case undefined:
      return true;
  }
}

/**
 * A failure that the daemon doesn't try again, or that the operator has withdrawn its grant for; not one of an earlier
 * target.
 */
function isOver({ spec, status }: MachineConfigNode): boolean {
  const { lastUpdate, conditions } = status ?? {};
  const prepared = conditionOf(conditions, 'UpdatePrepared');
  if (prepared?.status === 'False' && prepared.reason === PREPARING) return false;
  if (lastUpdate === undefined || lastUpdate.result === 'Succeeded') return spec.grant === undefined;
  const { configVersion, configImage } = spec;
  return lastUpdate.config === configVersion.desired && lastUpdate.image === configImage?.desiredImage;
}

/** @returns which node of several failed first by name, why, and what to do; undefined where none did. */
export function failedIn(
  nodes: readonly MachineConfigNode[],
  cluster: ObservedCluster,
  now: number,
): string | undefined {
  const [first] = nodes
    .map((node) => nodeView(node, cluster, now))
    .filter(({ state }) => state === 'degraded');
  return first && formatFailed(first.name, first.what, first.advice);
}

/** @returns that a node failed, why, and what to do. */
export function formatFailed(name: string, what = 'no reason is reported', advice?: string): string {
  return [`node ${name} failed: ${what}`, ...(advice === undefined ? [] : [advice])].join('; ');
}

function mayMove({ state, obstacle }: NodeView, node: MachineConfigNode): boolean {
  if (state === 'degraded') return !isOver(node);
  if (statesAtWork.has(state) || state === 'silent') return true;
  // What is updated has yet to be assigned the target that is waited for, unless somebody else holds it.
  return (state === 'staging' || state === 'updated') && obstacle === undefined;
}

function formatStuck(
  { name, state, obstacle, what }: NodeView,
  node: MachineConfigNode,
  remedyOf: (node: MachineConfigNode) => string,
): string {
  if (state !== 'degraded') return `node ${name} is skipped: ${obstacle}; ${remedyOf(node)}`;
  return formatFailed(name, what, adviceOn(node));
}
