import { z } from 'zod';
import { stateRecord } from './durable-json.ts';

const LeftOut = z.object({
  version: z.literal(1),
  /** The rendered config whose update this is about. */
  config: z.string(),
  /** What was found to differ when the update ended, each with its path, what was there and what should have been. */
  differing: z.array(z.string()),
  /** The error of what could not be written, where there was one. */
  why: z.string().exactOptional(),
});
/**
 * What an update did not bring to the disk. It is that update's failure and nobody's change: as long as a path is as
 * the update left it, it holds no other target back.
 */
export type LeftOut = z.infer<typeof LeftOut>;

const record = stateRecord('left-out.json', LeftOut);

/** Does not exist where the last update brought everything. */
export const readLeftOut = record.read;

/**
 * Writes the record, whole or not at all, and durably. @param leftOut undefined where the update brought everything.
 */
export async function writeLeftOut(root: string, leftOut: LeftOut | undefined): Promise<void> {
  await (leftOut === undefined ? record.remove(root) : record.write(root, leftOut));
}
