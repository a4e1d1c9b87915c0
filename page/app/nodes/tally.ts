import { type NodeStateName, nodeStateNames } from '../../../api/node-state.ts';
import { type Mark, marksOf } from '../words.ts';
import type { Member } from './cell-grid.tsx';

/** Nodes that have a state or a mark in common. */
export interface Tally<Kind> {
  readonly kind: Kind;
  readonly count: number;
  /** The first of them after the selected node, so that one after the other can be visited. */
  readonly next: string;
}

/**
 * @param selected the selected node, if it is among these.
 * @returns how many nodes are in each state, those that need attention first, and how many have each mark.
 */
export function tally(
  members: readonly Member[],
  selected: string | undefined,
): { readonly states: readonly Tally<NodeStateName>[]; readonly marks: readonly Tally<Mark>[] } {
  const from = members.findIndex(([name]) => name === selected) + 1;
  const [states, marks] = [new Map<NodeStateName, Tally<NodeStateName>>(), new Map<Mark, Tally<Mark>>()];
  for (let index = 0; index < members.length; index += 1) {
    const member = members[(from + index) % members.length];
    if (member === undefined) continue;
    const [name, node] = member;
    add(states, node.state, name);
    for (const mark of marksOf(node)) add(marks, mark, name);
  }
  return {
    states: nodeStateNames.flatMap((state) => states.get(state) ?? []),
    marks: [...marks.values()].toSorted((a, b) => b.count - a.count),
  };
}

function add<Kind>(tallies: Map<Kind, Tally<Kind>>, kind: Kind, name: string): void {
  const known = tallies.get(kind);
  tallies.set(kind, { kind, count: (known?.count ?? 0) + 1, next: known?.next ?? name });
}
