import { useMemo, useRef } from 'preact/hooks';
import { nodeStateNames } from '../../../api/node-state.ts';
import { plural } from '../../../api/plural.ts';
import { timeLeft } from '../../../view/time-left.ts';
import { formatTimeLeft } from '../../../view/words.ts';
import type { PageView, PlanRow, PoolRow, Table } from '../../model/view.ts';
import { ChangePanel, type PlannedChange } from '../change/change-panel.tsx';
import { hashOf } from '../route.ts';
import { HoldList } from '../sections/holds.tsx';
import { type PoolTone, toneOf, withShortHashes } from '../words.ts';
import { useNow } from '../zone.tsx';
import { Attention } from './attention.tsx';
import { CellGrid, type CellSelection, type CellSize, type Member } from './cell-grid.tsx';
import { Legend } from './legend.tsx';

interface PoolSectionProps extends Pick<PageView, 'plans'>, CellSelection {
  readonly name: string;
  /** Undefined for a deleted pool, and for nodes without a pool. */
  readonly pool: PoolRow | undefined;
  readonly members: readonly Member[];
  readonly size: CellSize;
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
  return (
    <article class={`pool ${size}`} aria-label={name === '' ? title : `Pool ${name}`} data-pool={name}>
      <header>
        <h3>{name === '' ? title : <a href={hashOf({ kind: 'pool', name })}>{title}</a>}</h3>
        {pool === undefined ? null : <span class={`tone ${toneOf(pool)}`}>{TONES[toneOf(pool)]}</span>}
        <span class="quiet">
          {plural(members.length, 'node')}
          {pool?.maxUnavailable === undefined ? '' : ` · at most ${pool.maxUnavailable} unavailable`}
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
      <StateBar members={members} />
      <CellGrid pool={title} members={members} size={size} selected={selected} onSelect={onSelect} />
    </article>
  );
}

interface PoolTimeProps extends Pick<PoolSectionProps, 'members' | 'plans'> {
  readonly pool: PoolRow;
  readonly now: number;
}

/** Thousands of nodes are read for it, so it follows the clock and the pool, not each change of a node. */
function TimeLeft({ pool, members, plans, now }: PoolTimeProps) {
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
function StateBar({ members }: Pick<PoolSectionProps, 'members'>) {
  const counts = Map.groupBy(members, ([, { state }]) => state);
  if (members.length === 0) return null;
  return (
    <div class="share" aria-hidden="true">
      {nodeStateNames.toReversed().map((state) => {
        const number = counts.get(state)?.length ?? 0;
        return number === 0 ? null : <span key={state} class={state} style={{ flexGrow: number }} />;
      })}
    </div>
  );
}
