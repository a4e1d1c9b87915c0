import path from 'node:path';
import type { Logger } from 'pino';
import { z } from 'zod';
import { FailureReason, UpdatePlan } from '../../api/machine-config-node.ts';
import { nodePaths } from '../../api/names.ts';
import { present } from '../../api/present.ts';
import { changeField } from '../../cluster/events.ts';
import { Current } from './current.ts';
import { readRecord, removeRecord, writeRecord } from './durable-json.ts';

/** The facts of an update, which each of its steps has. */
const facts = {
  version: z.literal(1),
  plan: UpdatePlan,
  /** What the node runs once the update is over. */
  next: Current,
  /** Layered mode: what the image's config has outside of /usr was written to the disk before the reboot. */
  brought: z.literal(true).exactOptional(),
  /** The boot during which the update began. */
  bootID: z.string(),
  /** RFC 3339 */
  startedAt: z.string(),
  /** The node has booted the target without a grant: it is verified, and proves nothing to other nodes. */
  withoutGrant: z.literal(true).exactOptional(),
  /** The node came with the target: nothing of Shale's ran before it, and there is nothing to roll back to. */
  firstBoot: z.literal(true).exactOptional(),
  /** Holder of the node lease under which the update began: a rollback is made under it, too. */
  leaseHolder: z.string().exactOptional(),
};
/** How often a reboot of the machine was requested at this step; absent: never. */
const rebootRequests = z.int().positive().exactOptional();
const Entry = z.discriminatedUnion('step', [
  z.object({
    ...facts,
    /**
     * The system is being changed. With a plan that reboots: on the way to the reboot, or changed live so far that only
     * a reboot ends it.
     */
    step: z.literal('applying'),
    /** Standard mode: the config's files are all written, so that another config has to begin from it. */
    written: z.boolean().exactOptional(),
    /** What an update that this one took the place of has left on the disk; absent: nothing. */
    onDisk: Current.exactOptional(),
  }),
  z.object({
    ...facts,
    /** The next boot is the target; whatever boots shows how it ended. */
    step: z.literal('rebooting'),
    /** RFC 3339: when the reboot was first requested; absent before, and where it was by an older daemon. */
    rebootingSince: z.string().exactOptional(),
    rebootRequests,
  }),
  z.object({
    ...facts,
    /** The target has booted, and its health is being checked. */
    step: z.literal('verifying'),
    verifying: z.object({
      /** The boot that is checked. */
      bootID: z.string(),
      /** When it was first looked at, in ms since the kernel started: a clock that no one sets. */
      sinceMs: z.number().min(0),
      /** How often the target was booted, this boot included. */
      boots: z.int().positive(),
    }),
    /** Why the content outside of /usr could not be written after the boot. */
    notBrought: z.string().exactOptional(),
  }),
  z.object({
    ...facts,
    /** The target is not healthy: the next boot is what ran before it. */
    step: z.literal('rollingBack'),
    /** The boot that was not healthy, or the one in which what was left of it is put right. */
    failedBoot: z.string(),
    /** Absent: HealthCheckFailed. */
    reason: FailureReason.exactOptional(),
    why: z.string(),
    /** The host rolled back by itself: the deployment is the former one already. */
    byHost: z.literal(true).exactOptional(),
    rebootRequests,
  }),
]);
/** The update that the node is in. It is on the disk before the first step of the update is taken. */
export type JournalEntry = z.infer<typeof Entry>;
type UpdateStep = JournalEntry['step'];

/** An update at one step of it. */
export type JournalEntryAt<Step extends UpdateStep> = Extract<JournalEntry, { readonly step: Step }>;

/** What an update may be followed by at each step. Once the target has booted, it ends or rolls back. */
const FOLLOWING: Readonly<Record<UpdateStep, readonly UpdateStep[]>> = {
  // The machine may reboot, or its host roll back, before the daemon has recorded that it was about to.
  applying: ['applying', 'rebooting', 'verifying', 'rollingBack'],
  rebooting: ['rebooting', 'verifying', 'rollingBack'],
  // Again, for each boot of the target.
  verifying: ['verifying', 'rollingBack'],
  rollingBack: ['rollingBack'],
};

/** What an entry has of its step alone: it goes with the step. */
type OwnOf<Step extends UpdateStep> = Omit<JournalEntryAt<Step>, keyof typeof facts | 'step'>;

/**
 * @param step where the update begins: the running system is about to be changed, or the target has booted already.
 * @returns the first entry of an update.
 */
export function begin<Step extends 'applying' | 'rebooting'>(
  step: Step,
  { plan, next }: Pick<JournalEntry, 'plan' | 'next'>,
  more: Pick<JournalEntry, 'bootID' | 'leaseHolder' | 'withoutGrant' | 'firstBoot'> & OwnOf<Step>,
): JournalEntryAt<Step> {
  return {
    version: 1,
    step,
    plan,
    next,
    startedAt: new Date().toISOString(),
    ...more,
  } as JournalEntryAt<Step>;
}

/**
 * Takes an update to its next step. The facts of the update stay, also those that change on the way; what the former
 * step had of its own goes.
 *
 * @throws TypeError for a step that can't follow.
 */
export function advance<Step extends UpdateStep>(
  entry: JournalEntry,
  step: Step,
  {
    plan = entry.plan,
    brought = entry.brought,
    ...own
  }: OwnOf<Step> & Partial<Pick<JournalEntry, 'plan' | 'brought'>>,
): JournalEntryAt<Step> {
  assertMayBecome(entry, step);
  const { version, next, bootID, startedAt, withoutGrant, firstBoot, leaseHolder } = entry;
  const kept = { version, plan, next, bootID, startedAt };
  const optional = present({ brought, withoutGrant, firstBoot, leaseHolder });
  return { ...kept, ...optional, ...own, step } as JournalEntryAt<Step>;
}

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
 * An update that is in progress can't be forgotten by beginning another. Only one that waits for a reboot may give way
 * to another that reboots.
 *
 * @throws TypeError
 */
function assertFollows(before: JournalEntry | undefined, next: JournalEntry): void {
  if (before === undefined) return;
  const same = isSameUpdate(before, next);
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
  assertMayBecome(before, next.step);
}

function assertMayBecome({ step: before, plan }: JournalEntry, step: UpdateStep): void {
  if (FOLLOWING[before].includes(step)) return;
  throw new TypeError(`journal: the update to ${plan.config} is ${before} and can't be ${step} again`);
}

function isSameUpdate(
  one: Pick<JournalEntry, 'plan' | 'next'>,
  other: Pick<JournalEntry, 'plan' | 'next'>,
): boolean {
  return (
    one.plan.config === other.plan.config &&
    one.plan.image === other.plan.image &&
    one.next.mode === other.next.mode
  );
}

/**
 * An update that only a reboot ends has changed the running system, and the record says what ran before it: that is
 * what a rollback leads to. The update that takes its place, or takes it up again, has to know what the disk has.
 *
 * @param before the entry that the new one takes the place of.
 * @returns what the new entry has to say of that.
 */
export function leftOnDisk(
  before: JournalEntry | undefined,
  update: Pick<JournalEntry, 'plan' | 'next'>,
): Pick<JournalEntryAt<'applying'>, 'written' | 'onDisk'> {
  if (before?.step !== 'applying') return {};
  const { written, onDisk } = before;
  if (isSameUpdate(before, update)) return present({ written, onDisk });
  return present({ onDisk: written === true || before.next.mode === 'Layered' ? before.next : onDisk });
}

/**
 * @returns the journal, whose every step is in the daemon's log, too: a report has it where nobody gets to the node.
 */
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
