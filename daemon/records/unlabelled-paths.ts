import path from 'node:path';
import { z } from 'zod';
import { nodePaths } from '../../api/names.ts';
import { readRecord, removeRecord, writeRecord } from './durable-json.ts';

const RecordSchema = z.object({ version: z.literal(1), paths: z.array(z.string().startsWith('/')) });

/**
 * Paths of the running root that a live apply writes and has not given their SELinux labels yet. What was written before a
 * crash has the right content by then, so that nothing but this record tells that its label is still its directory's.
 *
 * @param root the running root. @returns none where no apply was interrupted. @throws RecordError
 */
export async function readUnlabelledPaths(root: string): Promise<readonly string[]> {
  return (await readRecord(fileIn(root), RecordSchema))?.paths ?? [];
}

/** Writes the record, whole or not at all, and durably: before the first of the paths is written. */
export async function writeUnlabelledPaths(root: string, paths: readonly string[]): Promise<void> {
  await writeRecord(fileIn(root), { version: 1, paths });
}

/** All of them have their labels. */
export async function forgetUnlabelledPaths(root: string): Promise<void> {
  await removeRecord(fileIn(root));
}

function fileIn(root: string): string {
  return path.join(root, nodePaths.state, 'unlabelled-paths.json');
}
