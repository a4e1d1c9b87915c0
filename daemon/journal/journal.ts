import path from 'node:path';
import { z } from 'zod';
import { UpdatePlan } from '../../api/machine-config-node.ts';
import { nodePaths } from '../../api/names.ts';
import { Current } from '../records/current.ts';
import { readRecord, removeRecord, writeRecord } from '../records/durable-json.ts';

const Entry = z.object({
  version: z.literal(1),
  /**
   * applying: the system is being changed. With a plan that reboots: on the way to the reboot, or changed live so far
   * that only a reboot ends it.
   * rebooting: the next boot is the target; whatever boots tells how it ended.
   */
  step: z.enum(['applying', 'rebooting']),
  plan: UpdatePlan,
  /** What the node runs once the update is over. */
  next: Current,
  /** Standard mode: the config's files are all written, so that another config has to begin from it. */
  written: z.boolean().exactOptional(),
  /** The boot during which the step was taken. */
  bootID: z.string(),
  /** RFC 3339 */
  startedAt: z.string(),
});
/** The update that the node is in. It is on the disk before the first step of the update is taken. */
export type JournalEntry = z.infer<typeof Entry>;

/** The one-entry journal of a node: an update is over before the next begins. */
export interface Journal {
  /** @throws RecordError */
  read(): Promise<JournalEntry | undefined>;
  /** @throws TypeError for a step that can't follow the one that stands there. */
  write(entry: JournalEntry): Promise<void>;
  /** The update is over, one way or the other. */
  clear(): Promise<void>;
}

/** @returns the journal of the node whose running root this is. */
export function openJournal(root: string): Journal {
  const file = path.join(root, nodePaths.state, 'journal.json');
  const read = () => readRecord(file, Entry);
  return {
    read,
    async write(entry) {
      assertFollows(await read(), entry);
      await writeRecord(file, entry);
    },
    clear: () => removeRecord(file),
  };
}

/**
 * @returns whether the running system was changed, or may have been, by an update that only a reboot can end: into its
 *   target, or into any other.
 */
export function isStuck({ step, plan }: JournalEntry): boolean {
  return step === 'applying' && plan.actions.some(({ type }) => type === 'Reboot');
}

/**
 * Applying may become rebooting, and a reboot that did not come may be asked for again; nothing else: an update that is
 * under way can't be forgotten by beginning another. Only one that waits for a reboot may give way to another that
 * reboots.
 *
 * @throws TypeError
 */
export function assertFollows(before: JournalEntry | undefined, next: JournalEntry): void {
  if (before === undefined) return;
  const same =
    before.plan.config === next.plan.config &&
    before.plan.image === next.plan.image &&
    before.next.mode === next.next.mode;
  if (!same && !isStuck(before)) {
    throw new TypeError(
      `journal: the update to ${before.plan.config} is not over; ${next.plan.config} can't begin`,
    );
  }
  if (!same && !next.plan.actions.some(({ type }) => type === 'Reboot')) {
    throw new TypeError(
      `journal: only a reboot ends the update to ${before.plan.config}; ${next.plan.config} has none`,
    );
  }
  if (before.step === 'rebooting' && next.step === 'applying') {
    throw new TypeError(
      `journal: the update to ${next.plan.config} waits for its reboot and can't be applied live`,
    );
  }
}
