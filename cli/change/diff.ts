import { createTwoFilesPatch } from 'diff';
import { diffNodeConfigs } from '../../machineconfig/diff.ts';
import type { ConfigChange, NodeConfig } from '../../machineconfig/node-config.ts';
import { subjectOf, textOf } from './config-text.ts';
import type { OfflineCluster } from './offline-cluster.ts';
import { type BrokenPool, type ChangedPool, type PoolsBefore, poolChanges } from './pool-change.ts';

/** One difference on a node's disk. */
export interface ChangeDiff {
  readonly kind: ConfigChange['kind'];
  readonly subject: string;
  readonly change: ConfigChange['change'];
  /** Unified diff of decoded contents and attributes. */
  readonly diff: string;
}

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

/** @returns the differences of two configs as unified diffs, in the order of diffNodeConfigs. */
export function diffConfigs(from: NodeConfig, to: NodeConfig): readonly ChangeDiff[] {
  return diffNodeConfigs(from, to).map((change) => {
    const subject = subjectOf(change);
    const texts = [textOf(from, change, 'before'), textOf(to, change, 'after')] as const;
    const diff = patchOf({ subject, change: change.change }, ...texts);
    return { kind: change.kind, subject, change: change.change, diff };
  });
}

/** @returns one difference as a unified diff. */
export function patchOf(
  { subject, change }: Pick<ChangeDiff, 'subject' | 'change'>,
  before: string,
  after: string,
): string {
  return createTwoFilesPatch(
    change === 'added' ? '/dev/null' : `a ${subject}`,
    change === 'removed' ? '/dev/null' : `b ${subject}`,
    before,
    after,
    undefined,
    undefined,
    {
      context: 3,
      headerOptions: { includeIndex: false, includeUnderline: false, includeFileHeaders: true },
    },
  );
}

/** @returns the diffs as text: a line for each pool or pair of configs, and its patches below. */
export function formatDiffs(diffs: readonly (PoolDiff | ConfigDiff)[]): string {
  return diffs
    .flatMap((diff) => {
      if ('problems' in diff) {
        return [`pool ${diff.pool}: can't be rendered`, ...diff.problems.map((problem) => `  ${problem}`)];
      }
      const head = diff.changes.length === 0 ? 'no changes' : `${diff.from ?? 'nothing'} -> ${diff.to}`;
      const subject = 'pool' in diff ? `pool ${diff.pool}: ` : '';
      return [`${subject}${head}`, ...diff.changes.map(({ diff: patch }) => patch.trimEnd())];
    })
    .join('\n');
}
