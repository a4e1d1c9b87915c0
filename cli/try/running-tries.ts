import type { MachineConfig } from '../../api/machine-config.ts';
import { noun } from '../../api/plural.ts';
import { decideTry } from '../../machineconfig/tried-config.ts';

/**
 * Only the operator undoes what is being tried: without it, nodes would run the change for ever, or until another
 * installation finds it overdue and undoes it when nobody expects that.
 *
 * @param configs every MachineConfig of the cluster.
 * @returns why the operator can't go now and what to do; undefined if no change is being tried. An annotation that can't be
 *   read is none: the operator undoes nothing of it either.
 */
export function runningTries(configs: readonly MachineConfig[]): string | undefined {
  const tried = configs
    .flatMap((config) => {
      const decision = decideTry(config, Number.NEGATIVE_INFINITY);
      return decision.kind === 'waits' ? [`${config.metadata.name} (until ${decision.request.until})`] : [];
    })
    .toSorted();
  if (tried.length === 0) return undefined;
  const [be, them] = [noun(tried.length, 'is', 'are'), noun(tried.length, 'it', 'them')];
  return `${noun(tried.length, 'MachineConfig')} ${tried.join(', ')} ${be} being tried, and only the operator undoes ${them}: run shale try confirm to keep ${them}, or shale try cancel to undo ${them} now, and wait until the pools are Updated (shale status --wait)`;
}
