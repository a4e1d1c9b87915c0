import type { NodeStateName, PoolRow } from '../../model/view.ts';
import { count, STATE_MEANINGS, STATE_WORDS, STATES, withShortHashes } from '../words.ts';
import { CellGrid, type CellSize, type Member } from './cell-grid.tsx';

interface PoolSectionProps {
  readonly name: string;
  /** Undefined for a deleted pool, and for nodes without a pool. */
  readonly pool: PoolRow | undefined;
  readonly members: readonly Member[];
  readonly size: CellSize;
  readonly selected: string | undefined;
  readonly onSelect: (name: string) => void;
}

const TONES = { settled: 'up to date', busy: 'updating', paused: 'paused', trouble: 'degraded' } as const;

/** One pool: its progress, the number of nodes by state, and every node. */
export function PoolSection({ name, pool, members, size, selected, onSelect }: PoolSectionProps) {
  const title = name === '' ? 'Not in a pool' : name;
  const counts = countStates(members);
  return (
    <article class={`pool ${size}`} aria-label={name === '' ? title : `Pool ${name}`}>
      <header>
        <h3>{title}</h3>
        {pool === undefined ? null : <span class={`tone ${pool.tone}`}>{TONES[pool.tone]}</span>}
        <span class="quiet">
          {count(members.length, 'node')}
          {pool === undefined ? '' : ` · at most ${pool.maxUnavailable} unavailable`}
        </span>
      </header>
      {pool === undefined ? null : (
        <p class="headline" title={pool.headline}>
          {withShortHashes(pool.headline)}
        </p>
      )}
      <Share counts={counts} total={members.length} />
      <ul class="legend">
        {STATES.filter((state) => counts.has(state)).map((state) => (
          <li key={state} title={STATE_MEANINGS[state]}>
            <span class={`cell sample ${state}`} aria-hidden="true" /> <b>{counts.get(state)}</b>{' '}
            {STATE_WORDS[state]}
          </li>
        ))}
      </ul>
      <CellGrid pool={title} members={members} size={size} selected={selected} onSelect={onSelect} />
    </article>
  );
}

/** The shares of the states as a bar; the legend has the numbers. */
function Share({
  counts,
  total,
}: {
  readonly counts: ReadonlyMap<NodeStateName, number>;
  readonly total: number;
}) {
  if (total === 0) return null;
  return (
    <div class="share" aria-hidden="true">
      {STATES.toReversed().map((state) => {
        const number = counts.get(state) ?? 0;
        return number === 0 ? null : <span key={state} class={state} style={{ flexGrow: number }} />;
      })}
    </div>
  );
}

function countStates(members: readonly Member[]): ReadonlyMap<NodeStateName, number> {
  const counts = new Map<NodeStateName, number>();
  for (const [, { state }] of members) counts.set(state, (counts.get(state) ?? 0) + 1);
  return counts;
}
