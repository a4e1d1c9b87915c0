import { type ComparedHost, labelDrifts } from '../drift/label-drift.ts';
import type { ManagedContent } from '../entries/desired-tree.ts';
import { type Written, writeContent } from './write-content.ts';
import type { WriteTarget } from './write-log.ts';

/** The running root, and how its labels are compared. */
export type RestoreTarget = WriteTarget & Pick<ComparedHost, 'wrongLabels'>;

/**
 * Restores what somebody has changed of the content that Shale manages on the running root, SELinux labels too.
 *
 * /usr is left alone on a node with an image: it is read-only, and the next boot has it as the image does.
 *
 * @returns the paths written, or given their label, and those removed. @throws what writeContent throws;
 *   OsCommandError.
 */
export async function restoreContent(
  target: RestoreTarget,
  content: ManagedContent,
  signal: AbortSignal,
): Promise<Written> {
  const write = { from: content, to: content, force: true, clearsObstacles: true };
  const { written, removed } = await writeContent(target, write, { signal });
  const labelled = await restoreLabels(target, content, signal);
  return { written: [...new Set([...written, ...labelled])], removed };
}

/**
 * Gives the content that Shale manages on the running root the labels that the host's policy has for it.
 *
 * @returns the paths whose labels differed. @throws OsCommandError, the file system's errors.
 */
export async function restoreLabels(
  target: Pick<RestoreTarget, 'root' | 'relabel' | 'wrongLabels'>,
  content: ManagedContent,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const drifts = await labelDrifts(
    { host: { root: target.root }, wrongLabels: target.wrongLabels },
    content,
    signal,
  );
  const names = drifts.map(({ name }) => name);
  if (names.length > 0) await target.relabel(target.root, names, signal);
  return drifts.map((drift) => drift.path);
}
