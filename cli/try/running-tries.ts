import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { noun } from '../../api/plural.ts';
import { deadlineOf } from './decide-try.ts';

/**
 * Only the operator rolls back what nobody confirms: without it, nodes would run the change for ever, or until another
 * installation finds the deadline.
 *
 * @returns why the operator can't go now and what to do; undefined if no change is being tried. A deadline that can't
 *   be read is ignored, as the operator ignores it.
 */
export function runningTries(pools: readonly MachineConfigPool[]): string | undefined {
  const tried = pools
    .flatMap((pool) => {
      const deadline = deadlineOf(pool);
      const isKept = deadline !== undefined && deadline !== 'unreadable';
      return isKept ? [`${pool.metadata.name} (until ${deadline.until})`] : [];
    })
    .toSorted();
  if (tried.length === 0) return undefined;
  const it = noun(tried.length, 'it', 'them');
  return `a change of ${noun(tried.length, 'pool')} ${tried.join(', ')} is being tried, and only the operator rolls ${it} back: run shale try confirm to keep it, or shale try cancel to undo it now, and wait until the pools are Updated (shale status --wait)`;
}
