import { isDeepStrictEqual } from 'node:util';
import type { MachineConfigPoolStatus } from '../../api/machine-config-pool.ts';

/** ms between two writes that tell of nothing but other counts: in a rollout these change with every node. */
const COUNTS_INTERVAL = 2_000;

/**
 * @param before the status as it stands, @param after and as it should be.
 * @param writtenAt when this process wrote it last, @param now and now: ms since the epoch.
 * @returns ms to wait before the new one is written; 0 where there is nothing to wait for. What an admin or a tool waits for
 *   (a condition that turns, another configuration) is told at once.
 */
export function statusWait(
  before: MachineConfigPoolStatus | undefined,
  after: MachineConfigPoolStatus,
  writtenAt: number | undefined,
  now: number,
): number {
  if (writtenAt === undefined || isDeepStrictEqual(before, after)) return 0;
  const isNews = !isDeepStrictEqual(verdictsOf(before), verdictsOf(after));
  // A clock that was set back holds nothing up.
  return isNews || now < writtenAt ? 0 : Math.max(0, writtenAt + COUNTS_INTERVAL - now);
}

function verdictsOf(status: MachineConfigPoolStatus | undefined): readonly unknown[] {
  const { configuration, observedGeneration, conditions = [] } = status ?? {};
  const verdicts = conditions.map(({ type, status: is, reason }) => [type, is, reason]);
  return [configuration?.name, observedGeneration, verdicts];
}
