import type { Logger } from 'pino';
import { changeField } from '../../cluster/about-change.ts';
import type { Journal, JournalEntry } from './journal.ts';

/** @returns the journal, whose every step is in the daemon's log, too: a report has it where nobody gets to the node. */
export function loggedJournal(journal: Journal, log: Logger): Journal {
  return {
    read: () => journal.read(),
    async write(entry) {
      await journal.write(entry);
      log.info(fieldsOf(entry), 'journal: the update is at this step');
    },
    async clear() {
      await journal.clear();
      log.info('journal: no update is under way');
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
    ...(plan.image === undefined ? {} : { image: plan.image }),
    mode: next.mode,
    bootID,
    startedAt,
  };
}
