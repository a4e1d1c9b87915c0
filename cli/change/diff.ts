import { visible, visibleLine } from '../../api/visible-text.ts';
import { type ChangeDiff, diffConfigs } from '../../machineconfig/text-diff.ts';
import type { OfflineCluster } from '../../predict/objects/offline-cluster.ts';
import {
  type BrokenPool,
  type ChangedPool,
  type PoolsBefore,
  poolChanges,
} from '../../predict/pool-change.ts';

/** What changes on the nodes of a pool. `shale diff -o json` prints a list of these. */
export type PoolDiff = BrokenPool | (ChangedPool & { readonly changes: readonly ChangeDiff[] });

/** The differences between two named MachineConfigs. */
export interface ConfigDiff {
  readonly from: string;
  readonly to: string;
  readonly changes: readonly ChangeDiff[];
}

/** @returns what changes on each pool's nodes from one state of a cluster to another. */
export function diffPools(before: PoolsBefore, after: OfflineCluster): readonly PoolDiff[] {
  return poolChanges(
    before,
    after,
    ({ before: from, after: to, refused: _, rendered: _objects, configs: _configs, ...names }) => ({
      ...names,
      changes: diffConfigs(from, to),
    }),
  );
}

/** @returns the diffs as text: a line for each pool or pair of configs, and its patches below. */
export function formatDiffs(diffs: readonly (PoolDiff | ConfigDiff)[]): string {
  return diffs
    .flatMap((diff) => {
      if ('problems' in diff) {
        return [
          `pool ${diff.pool}: can't be rendered`,
          ...diff.problems.map((problem) => `  ${visibleLine(problem)}`),
        ];
      }
      const head = diff.changes.length === 0 ? 'no changes' : `${diff.from ?? 'nothing'} -> ${diff.to}`;
      const subject = 'pool' in diff ? `pool ${diff.pool}: ` : '';
      return [`${subject}${head}`, ...diff.changes.map(({ diff: patch }) => visible(patch).trimEnd())];
    })
    .join('\n');
}
