import { type NodeStateName, nodeStates } from '../../../api/node-state.ts';
import { stateWord } from '../../../view/words.ts';
import { hashOf } from '../route.ts';
import { MARK_WORDS, type Mark } from '../words.ts';
import type { Member } from './cell-grid.tsx';
import { type Tally, tally } from './tally.ts';

interface LegendProps {
  readonly members: readonly Member[];
  /** The selected node, if it is among these. */
  readonly selected: string | undefined;
}

/** What somebody looks for: a link to each state and mark would be ten more stops of the keyboard for each pool. */
const LINKED: ReadonlySet<NodeStateName | Mark> = new Set([
  'degraded',
  'silent',
  'not-ready',
  'skipped',
  'blocked',
]);

/** What figures and marks of cells mean, and how many nodes have each; of trouble with a link to the next node. */
export function Legend({ members, selected }: LegendProps) {
  const { states, marks } = tally(members, selected);
  return (
    <ul class="legend">
      {states.map((each) => (
        <li key={each.kind} class="state" title={nodeStates[each.kind]}>
          <Entry tally={each} word={stateWord(each.kind)} />
        </li>
      ))}
      {marks.map((each) => (
        <li key={each.kind} class="mark">
          <Entry tally={each} word={MARK_WORDS[each.kind]} />
        </li>
      ))}
    </ul>
  );
}

function Entry({ tally, word }: { readonly tally: Tally<NodeStateName | Mark>; readonly word: string }) {
  const { kind, count, next } = tally;
  const text = (
    <>
      <b>{count}</b> {word}
    </>
  );
  return (
    <>
      <span class={`cell sample ${kind}`} aria-hidden="true" />{' '}
      {LINKED.has(kind) ? (
        <a class="next" href={hashOf({ kind: 'node', name: next })}>
          {text}
        </a>
      ) : (
        text
      )}
    </>
  );
}
