import path from 'node:path';
import type { Logger } from 'pino';
import { z } from 'zod';
import { FailureReason, UpdatePlan } from '../../api/machine-config-node.ts';
import { nodePaths } from '../../api/names.ts';
import { present } from '../../api/present.ts';
import { changeField } from '../../cluster/events.ts';
import { Current } from './current.ts';
import { readRecord, removeRecord, writeRecord } from './durable-json.ts';

const common = {
  version: z.literal(1),
  plan: UpdatePlan,
  /** What the node runs once the update is over. */
  next: Current,
  /** Standard mode: the config's files are all written, so that another config has to begin from it. */
  written: z.boolean().exactOptional(),
  /** Layered mode: what the image's config has outside of /usr was brought to the disk before the reboot. */
  brought: z.literal(true).exactOptional(),
  /** Why that could not be brought after the boot. */
  notBrought: z.string().exactOptional(),
  /** The boot during which the update began. */
  bootID: z.string(),
  /** RFC 3339 */
  startedAt: z.string(),
  /** RFC 3339: when the reboot was first asked for; absent before, and where it was by an older daemon. */
  rebootingSince: z.string().exactOptional(),
  /** How often a reboot of the machine was asked for at this step; absent: never. */
  rebootRequests: z.int().positive().exactOptional(),
  /** The node has booted the target without a grant: it is verified, and proves nothing to other nodes. */
  withoutGrant: z.literal(true).exactOptional(),
  /** The node came with the target: nothing of Shale's ran before it, and there is nothing to roll back to. */
  firstBoot: z.literal(true).exactOptional(),
  /** Holder of the node lease under which the update began: a way back is taken under it, too. */
  leaseHolder: z.string().exactOptional(),
};
const Entry = z.discriminatedUnion('step', [
  z.object({
    ...common,
    /**
     * The system is being changed. With a plan that reboots: on the way to the reboot, or changed live so far that only a
     * reboot ends it.
     */
    step: z.literal('applying'),
  }),
  z.object({
    ...common,
    /** The next boot is the target; whatever boots tells how it ended. */
    step: z.literal('rebooting'),
  }),
  z.object({
    ...common,
    /** The target has booted, and is to be found healthy. */
    step: z.literal('verifying'),
    verifying: z.object({
      /** The boot that is looked at. */
      bootID: z.string(),
      /** When it was first looked at, in ms since the kernel started: a clock that no one sets. */
      sinceMs: z.number().min(0),
      /** How often the target was booted, this boot included. */
      boots: z.int().positive(),
    }),
  }),
  z.object({
    ...common,
    /** The target is not healthy: the next boot is what ran before it. */
    step: z.literal('rollingBack'),
    /** The boot that was not healthy, or the one in which what was left of it is put right. */
    failedBoot: z.string(),
    /** Absent: HealthCheckFailed. */
    reason: FailureReason.exactOptional(),
    why: z.string(),
    /** The host rolled back by itself: the deployment is the former one already. */
    byHost: z.literal(true).exactOptional(),
  }),
]);
/** The update that the node is in. It is on the disk before the first step of the update is taken. */
export type JournalEntry = z.infer<typeof Entry>;

/** An update at one step of it. */
export type JournalEntryAt<Step extends JournalEntry['step']> = Extract<
  JournalEntry,
  { readonly step: Step }
>;

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
 * reboots. Once the target has booted the update ends, or goes back.
 *
 * @throws TypeError
 */
function assertFollows(before: JournalEntry | undefined, next: JournalEntry): void {
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
  if (ORDER[next.step] < ORDER[before.step]) {
    throw new TypeError(
      `journal: the update to ${next.plan.config} is ${before.step} and can't be ${next.step} again`,
    );
  }
}

const ORDER: Readonly<Record<JournalEntry['step'], number>> = {
  applying: 0,
  rebooting: 1,
  verifying: 2,
  rollingBack: 3,
};

/** @returns the journal, whose every step is in the daemon's log, too: a report has it where nobody gets to the node. */
export function loggedJournal(journal: Journal, log: Logger): Journal {
  return {
    read: () => journal.read(),
    async write(entry) {
      await journal.write(entry);
      log.info(fieldsOf(entry), 'Journal: the update reached this step');
    },
    async clear() {
      await journal.clear();
      log.info('Journal: no update is in progress');
    },
  };
}

/** Of the entry what names it: the rendered config in it has contents. */
export function fieldsOf({
  step,
  plan,
  next,
  bootID,
  startedAt,
}: JournalEntry): Readonly<Record<string, unknown>> {
  return {
    ...changeField(plan.config),
    step,
    config: plan.config,
    ...present({ image: plan.image }),
    mode: next.mode,
    bootID,
    startedAt,
  };
}
