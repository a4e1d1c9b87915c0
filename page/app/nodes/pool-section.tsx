import { useMemo, useRef } from 'preact/hooks';
import { type NodeStateName, nodeStateNames } from '../../../api/node-state.ts';
import { plural } from '../../../api/plural.ts';
import { timeLeft } from '../../../view/time-left.ts';
import { formatTimeLeft } from '../../../view/words.ts';
import type { PlanRow, PoolRow, Table } from '../../model/view.ts';
import { ChangePanel, type PlannedChange } from '../change/change-panel.tsx';
import { hashOf } from '../route.ts';
import { HoldList } from '../sections/holds.tsx';
import { type PoolTone, toneOf, withShortHashes } from '../words.ts';
import { useNow } from '../zone.tsx';
import { Attention } from './attention.tsx';
import { CellGrid, type CellSize, type Member } from './cell-grid.tsx';
import { Legend } from './legend.tsx';

interface PoolSectionProps {
  readonly name: string;
  /** Undefined for a deleted pool, and for nodes without a pool. */
  readonly pool: PoolRow | undefined;
  readonly members: readonly Member[];
  readonly plans: Table<PlanRow>;
  readonly size: CellSize;
  readonly selected: string | undefined;
  readonly onSelect: (name: string) => void;
}

const TONES: Readonly<Record<PoolTone, string>> = {
  settled: 'up to date',
  busy: 'updating',
  paused: 'paused',
  trouble: 'degraded',
};

/** One pool: its progress, the number of nodes by state, and every node. */
export function PoolSection({ name, pool, members, plans, size, selected, onSelect }: PoolSectionProps) {
  const now = useNow(5_000);
  const title = name === '' ? 'Not in a pool' : name;
  const counts = countStates(members);
  return (
    <article class={`pool ${size}`} aria-label={name === '' ? title : `Pool ${name}`} data-pool={name}>
      <header>
        <h3>{name === '' ? title : <a href={hashOf({ kind: 'pool', name })}>{title}</a>}</h3>
        {pool === undefined ? null : <span class={`tone ${toneOf(pool)}`}>{TONES[toneOf(pool)]}</span>}
        <span class="quiet">
          {plural(members.length, 'node')}
          {pool === undefined ? '' : ` · at most ${pool.maxUnavailable} unavailable`}
        </span>
        {pool === undefined ? null : <TimeLeft pool={pool} members={members} plans={plans} now={now} />}
        {pool === undefined ? null : <HoldList holds={pool.holds ?? []} now={now} />}
      </header>
      {pool === undefined ? null : (
        <p class="headline" title={pool.what}>
          {withShortHashes(pool.what ?? '')}
        </p>
      )}
      <Attention members={members} now={now} />
      {pool === undefined ? null : (
        <ChangePanel name={name} pool={pool} planned={plannedChanges(members, plans)} />
      )}
      <Legend members={members} selected={selected} />
      <StateBar counts={counts} total={members.length} />
      <CellGrid pool={title} members={members} size={size} selected={selected} onSelect={onSelect} />
    </article>
  );
}

interface TimeLeftProps {
  readonly pool: PoolRow;
  readonly members: readonly Member[];
  readonly plans: Table<PlanRow>;
  readonly now: number;
}

/** Thousands of nodes are read for it, so it follows the clock and the pool, not each change of a node. */
function TimeLeft({ pool, members, plans, now }: TimeLeftProps) {
  const latest = useRef({ members, plans });
  latest.current = { members, plans };
  const shown = useMemo(() => {
    const { members: nodes, plans: rows } = latest.current;
    const actionsOf = (plan: string | undefined) => rows[plan ?? '']?.actions;
    const timed = nodes.map(([, { plan, last, ...node }]) => ({
      ...node,
      planned: actionsOf(plan),
      last: last && { ...last, ofTarget: last.ofTarget === true, actions: actionsOf(last.plan) ?? [] },
    }));
    const left = timeLeft(pool, timed, now);
    return left === undefined ? undefined : formatTimeLeft(left);
  }, [pool, now]);
  return shown === undefined ? null : (
    <span class="time-left">
      {shown.text}
      <span class="basis">{shown.basis}</span>
    </span>
  );
}

/** @returns what the plans of nodes that are not updated yet say of the change. */
function plannedChanges(members: readonly Member[], plans: Table<PlanRow>): readonly PlannedChange[] {
  const keys = new Set(members.flatMap(([, { plan }]) => plan ?? []));
  const changes = [...keys].flatMap((key) => plans[key]?.causes ?? []);
  return [...new Map(changes.map((change) => [`${change.subject} ${change.change}`, change])).values()];
}

/** The shares of the states as a bar; the legend has the numbers. */
function StateBar({
  counts,
  total,
}: {
  readonly counts: ReadonlyMap<NodeStateName, number>;
  readonly total: number;
}) {
  if (total === 0) return null;
  return (
    <div class="share" aria-hidden="true">
      {nodeStateNames.toReversed().map((state) => {
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
