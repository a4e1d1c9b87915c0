import { formatDriver, type MachineOwner } from '../../api/machine-owner.ts';
import { byCodeUnits } from '../../api/order.ts';
import { shortList } from '../../api/plural.ts';
import { AWAITING_CLUSTER_API, type Driven, drivenBy, isHandedOver } from '../gates/driven-by.ts';
import type { Hold } from '../gates/hold.ts';
import { isAway, isUpdated, type NodeState } from './node-state.ts';

/** What is decided about the nodes of a pool that are not updated. */
interface Outstanding {
  readonly states: readonly NodeState[];
  /** What is next on nodes that are under way. */
  readonly steps: ReadonlyMap<string, unknown>;
}

/** @returns what nodes wait for that have staged their target and were not handed over, by node. */
export function handoverWaits(pool: Driven, states: readonly NodeState[]): ReadonlyMap<string, string> {
  return new Map(
    states.flatMap((node) => {
      const hold = node.update.progress.kind === 'staged' ? drivenBy.hold(pool, node) : undefined;
      return hold === undefined ? [] : [[node.name, hold.message] as const];
    }),
  );
}

/** @returns what the pool waits for, where every node that is not updated waits to be handed over. */
export function leftToClusterApi(pool: Driven, { states, steps }: Outstanding): Hold | undefined {
  const owner = pool.settings.drivenBy;
  const waits = handoverWaits(pool, states);
  const outstanding = states.filter((node) => !isUpdated(node) && !isAway(node));
  const isLeft = ({ name }: NodeState) => waits.has(name) && !steps.has(name);
  if (owner === undefined || outstanding.length === 0 || !outstanding.every(isLeft)) return undefined;
  return { reason: AWAITING_CLUSTER_API, message: formatDriven(owner, states) };
}

/** Nodes named in a message; the rest is counted. */
const NAMED_NODES = 10;

/** @returns who decides about a pool's nodes, and which of them were handed over, as a clause. */
export function formatDriven(
  owner: MachineOwner,
  states: readonly Pick<NodeState, 'name' | 'claims'>[],
): string {
  const names = states.filter((node) => isHandedOver(owner, node)).map(({ name }) => name);
  const handedOver =
    names.length === 0
      ? 'no node is handed over'
      : `handed over: ${shortList(names.toSorted(byCodeUnits), NAMED_NODES)}`;
  return `${formatDriver(owner)} decides when nodes are updated; ${handedOver}`;
}
