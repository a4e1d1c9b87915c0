import type { Logger } from 'pino';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import type { FailingStep, FailingSteps, StepObject } from '../../cluster/failing-steps.ts';
import type { Caches } from '../caches.ts';
import type { PoolDecision } from '../pools/decide-pool.ts';
import { stepsOfStatus } from '../pools/failing-steps.ts';
import type { Membership } from '../pools/membership.ts';
import { isOfPass } from './attempt.ts';
import { wantedOnNodes } from './carry-out.ts';
import { markedNodes, markFailing } from './mark-failing.ts';

export interface PoolFailuresParts {
  readonly client: ApiClient;
  readonly caches: Pick<Caches, 'machineConfigNodes'>;
  readonly membership: Pick<Membership, 'poolOf'>;
  /** Shared by all controllers. */
  readonly failing: FailingSteps;
  readonly log: Logger;
  /** ms since the epoch. */
  readonly now: () => number;
}

/**
 * @returns whether what can't be done on an object concerns a pool: also on a node that has left it, and is in no
 * other.
 */
export function isAboutPool(
  { caches, membership }: Pick<PoolFailuresParts, 'caches' | 'membership'>,
  { kind, metadata: { name } }: StepObject,
  pool: string,
): boolean {
  switch (kind) {
    case 'MachineConfigPool':
      return name === pool;
    case 'Node':
      return (membership.poolOf(name) ?? caches.machineConfigNodes.get(name)?.spec.pool.name) === pool;
    // Which policies hold is in its status, and no node of any pool may start without.
    case 'MachineConfiguration':
      return true;
    default:
      return false;
  }
}

/** What of all that fails in the operator is about a pool. */
export class PoolFailures {
  readonly #parts: PoolFailuresParts;
  /** By pool: the nodes that say that something fails. */
  readonly #marked = new Map<string, Set<string>>();

  constructor(parts: PoolFailuresParts) {
    this.#parts = parts;
  }

  /** What people have to be told that can't be done on the pool and its nodes, those included that have left it. */
  of(pool: string): readonly FailingStep[] {
    return this.#parts.failing.reported().filter(({ object }) => isAboutPool(this.#parts, object, pool));
  }

  /** Takes over what an earlier process has reported. */
  restore({ status = {} }: MachineConfigPool): void {
    this.#parts.failing.restore(stepsOfStatus(status));
  }

  forget(pool: string): void {
    this.#marked.delete(pool);
  }

  /** What failed on a node, and is not to be done any more. */
  forgetUnwanted(pool: string, decision: PoolDecision): void {
    const { failing, membership } = this.#parts;
    const wanted = wantedOnNodes(decision);
    for (const step of failing.all()) {
      const { name } = step.object.metadata;
      if (!isOfPass(step) || membership.poolOf(name) !== pool) continue;
      if (wanted.get(name)?.has(step.doing) !== true) failing.over(step.object, step.doing);
    }
  }

  /** Has the nodes say it. Those that an earlier process has marked are known from their statuses. */
  async mark(pool: string, signal: AbortSignal): Promise<void> {
    const { machineConfigNodes } = this.#parts.caches;
    const ofPool = () => machineConfigNodes.list().filter(({ spec }) => spec.pool.name === pool);
    const marked = this.#marked.get(pool) ?? markedNodes(ofPool());
    this.#marked.set(pool, marked);
    await markFailing(this.#parts, marked, this.of(pool), signal);
  }
}
