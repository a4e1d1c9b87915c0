import { createTwoFilesPatch, structuredPatch } from 'diff';
import { visibleLine } from '../api/visible-text.ts';
import { subjectOf, textOf } from './config-text.ts';
import { diffNodeConfigs } from './diff.ts';
import type { ConfigChange, NodeConfig } from './node-config.ts';

/** One difference on a node's disk. */
export interface ChangeDiff {
  readonly kind: ConfigChange['kind'];
  readonly subject: string;
  readonly change: ConfigChange['change'];
  /** Unified diff of decoded contents and attributes. */
  readonly diff: string;
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
    change === 'added' ? '/dev/null' : `a ${visibleLine(subject)}`,
    change === 'removed' ? '/dev/null' : `b ${visibleLine(subject)}`,
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

/** Lines that differ, with three unchanged lines around them. */
export interface LineDiff {
  readonly added: number;
  readonly removed: number;
  /** Each starts with `+`, `-`, a space, or with `@@` where lines are left out before it. */
  readonly lines: readonly string[];
}

/**
 * @param mostEdits lines that may differ: to compare very different texts takes long.
 * @returns undefined where more lines differ.
 */
export function diffLines(before: string, after: string, mostEdits: number): LineDiff | undefined {
  const patch = structuredPatch('', '', before, after, undefined, undefined, {
    context: 3,
    maxEditLength: mostEdits,
  });
  if (patch === undefined) return undefined;
  const hunks = patch.hunks.map(({ lines }) => lines.filter((line) => !line.startsWith('\\')));
  const all = hunks.flat();
  return {
    added: all.filter((line) => line.startsWith('+')).length,
    removed: all.filter((line) => line.startsWith('-')).length,
    lines: patch.hunks.flatMap(({ oldStart, oldLines, newStart, newLines }, index) => [
      `@@ -${rangeOf(oldStart, oldLines)} +${rangeOf(newStart, newLines)} @@`,
      ...(hunks[index] ?? []),
    ]),
  };
}

/** An empty range starts before its line (POSIX, diff -u). */
function rangeOf(start: number, lines: number): string {
  return `${lines === 0 ? start - 1 : start},${lines}`;
}
