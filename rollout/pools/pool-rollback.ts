import type { RollbackRequest } from '../../api/annotation-requests.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { annotations } from '../../api/names.ts';
import type { PoolSettings } from './pool-settings.ts';
import type { PoolTarget } from './pool-target.ts';
import { decideRollback, type Rollback, type RollbackKnowledge, runningTarget } from './rollback.ts';
import { type DeadlineState, decideDeadline, unconfirmedRequest } from './rollback-deadline.ts';

/** Whether a pool is rolled back, on request or at a deadline. */
export interface PoolRollback {
  /** The target that the pool would have if no rollback held it. */
  readonly ownTarget: PoolTarget;
  readonly state: Rollback;
  /** What `state` is decided about: the pool's annotation, or what a deadline that has passed puts there. */
  readonly request: RollbackRequest | undefined;
  readonly deadline: DeadlineState;
}

/**
 * Decides whether a pool is rolled back, or is going to be unless its change is confirmed.
 *
 * @param known only asked for a pool that is or may be rolled back: it reads every node.
 * @param now ms since the epoch.
 */
export function decidePoolRollback(
  pool: Pick<MachineConfigPool, 'status'>,
  settings: Pick<PoolSettings, 'rollback' | 'deadline'>,
  ownTarget: PoolTarget,
  known: () => RollbackKnowledge,
  now: number,
): PoolRollback {
  const deadline = decideDeadline(
    settings.deadline,
    pool.status?.rollbackDeadline,
    () => runningTarget(pool, ownTarget, known()),
    now,
  );
  const request =
    settings.rollback ?? (deadline.kind === 'passed' ? unconfirmedRequest(deadline, now) : undefined);
  const state: Rollback =
    request === undefined ? { kind: 'none' } : decideRollback(request, ownTarget, known(), now);
  return { ownTarget, state, request, deadline };
}

/** @returns the target of a pool: that of its rollback, where there is one. */
export function targetUnder({ ownTarget, state }: PoolRollback): PoolTarget {
  return state.kind === 'rolled-back' ? state.target : ownTarget;
}

/** @returns why no update starts in a pool that can't be rolled back as it was asked. */
export function closedByRollback({ state, deadline }: PoolRollback): string | undefined {
  if (state.kind === 'refused') return `the pool can't be rolled back: ${state.why}`;
  if (deadline.kind === 'refused')
    return `the deadline in annotation ${annotations.rollbackDeadline} is refused: ${deadline.why}; remove it, and set another one`;
  return undefined;
}
