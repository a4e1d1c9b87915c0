import type { RepairRecord, RepairRequest } from '../../api/annotation-requests.ts';
import { errorMessage } from '../../api/error-message.ts';
import { OPERATOR_LEASE_HOLDER } from '../../api/names.ts';
import { LONGEST_MESSAGE } from '../../api/object.ts';
import type { ManagedContent } from '../content/entries/desired-tree.ts';
import { managedContent } from '../content/managed-content.ts';
import { restoreContent } from '../content/write/restore-content.ts';
import { UndoError } from '../content/write/write-content.ts';
import { writeLastRepair } from '../records/last-update.ts';
import { otherHolder } from './await-grant.ts';
import { writeTarget } from './disk-work.ts';
import type { Observation } from './step.ts';
import { again, recordEvent, recordWarning, type StepContext, type StepOutcome } from './step-context.ts';

/**
 * Carries a request out: restores what differs from what the node runs, as the force file does, and records it. A
 * repair that fails is not tried again: it would keep every update waiting. It fails on a node that somebody else
 * holds: `shale repair` checks that, but the request may have waited since, for an update to end or for the daemon.
 *
 * @throws {ApiError} when the lease can't be read. UndoError, and the signal's reason: the request is carried out again
 *   then, which is harmless.
 */
export async function repair(
  context: StepContext,
  request: RepairRequest,
  { current }: Observation,
): Promise<StepOutcome> {
  const { ports, signal } = context;
  const { id, by, leaseHolder } = request;
  const holder = await otherHolder(context, leaseHolder ?? OPERATOR_LEASE_HOLDER);
  const ended = (result: RepairRecord['result']) =>
    ({ id, by, finishedAt: new Date().toISOString(), result }) as const;
  let record: RepairRecord;
  try {
    if (holder !== undefined) {
      throw new Error(
        `Nothing was overwritten: ${holder} holds the node lease; run shale repair again once it is released, or with --force`,
      );
    }
    const under = leaseHolder === undefined ? '' : ` under the lease of ${leaseHolder}`;
    const because = `${by || 'somebody'} requested a repair${under}`;
    const content = await managedContent(ports.host.root, current);
    if (content === undefined)
      recordEvent(context, 'ConfigPutBack', `${because}, and no config is on the node yet`);
    else await restoreChanged(context, content, because);
    record = ended('Succeeded');
  } catch (error) {
    signal.throwIfAborted();
    // The disk is between two states: until it is not, nothing else may begin.
    if (error instanceof UndoError) throw error;
    const message = errorMessage(error).slice(0, LONGEST_MESSAGE);
    recordWarning(context, 'RepairFailed', message);
    record = { ...ended('Failed'), message };
  }
  await writeLastRepair(ports.host.root, record);
  return again;
}

/** systemd has to read units again when one of them is restored. */
const UNITS = '/etc/systemd/system/';

/**
 * Restores what somebody has changed of the content that Shale manages. Nothing is reloaded but systemd's own units,
 * and nothing reboots: what a service has read since, its admin knows (MCO reboots the node).
 *
 * @param because who permits it, as a clause for the event.
 * @throws what restoreContent throws, and systemd's refusal.
 */
export async function restoreChanged(
  context: StepContext,
  content: ManagedContent,
  because: string,
): Promise<void> {
  const { ports, signal } = context;
  const { config } = content;
  const { written, removed } = await restoreContent(writeTarget(ports), content, signal);
  const paths = [...written, ...removed];
  if (paths.some((name) => name.startsWith(UNITS))) await ports.services.daemonReload(signal);
  recordEvent(
    context,
    'ConfigPutBack',
    paths.length === 0
      ? `${because}, and nothing differs from ${config.name}`
      : `Restored from ${config.name}, because ${because}: ${paths.join(', ')}. Services that read these files were not restarted`,
  );
}
