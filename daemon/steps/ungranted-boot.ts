import type { UpdatePlan } from '../../api/machine-config-node.ts';
import { present } from '../../api/present.ts';
import { sameList } from '../../machineconfig/diff.ts';
import { undoLive } from '../content/live/live-apply.ts';
import { LiveApplyRefused } from '../files/tree-change.ts';
import type { NodeDeployment } from '../os/backend.ts';
import { type Current, imageOf, readCurrent } from '../records/current.ts';
import { begin, type JournalEntry } from '../records/journal.ts';
import { readLastUpdate } from '../records/last-update.ts';
import { currentAfterBoot, writeCorrected } from './end-update.ts';
import { recordWarning, type StepContext } from './step-context.ts';
import { formatArguments, formatNodeTarget } from './update.ts';

/**
 * Compares what the node has booted with its record, where no update is in the journal. What boots without a grant is
 * an update all the same: it is verified like one, and rolled back from like one. A loss of power must not make an
 * image the running one that failed its health checks on the node beside.
 *
 * A fresh node that came with an image of Shale's is verified, too: what its pool runs may not be healthy on this
 * machine.
 *
 * The journal is written before the record, so that a daemon that is killed goes on verifying.
 *
 * @throws RecordError, and what the image tool throws.
 */
export async function takeUpBoot(context: StepContext): Promise<void> {
  const { ports, journal, signal } = context;
  const { host, backend } = ports;
  const last = await readLastUpdate(host.root);
  const bootID = await host.bootID();
  if (last?.bootIDAfter === bootID) return;
  const current = await readCurrent(host.root);
  const { booted } = await backend.status(signal);
  const corrected = currentAfterBoot(current, booted);
  if (corrected === current) return;
  if (current === undefined && corrected !== undefined) {
    await journal.write(firstBootEntry(corrected));
    return;
  }
  if (corrected === undefined || !isAnotherDeployment(current, corrected)) {
    await writeCorrected(host.root, corrected);
    return;
  }
  const undone = await undoLiveContent(context, booted, current);
  const entry = entryOf(corrected, last?.bootIDAfter ?? BOOT_UNKNOWN);
  recordWarning(
    context,
    'BootedWithoutGrant',
    `The node booted ${formatBooted(corrected, current)} without a grant, instead of ${formatBooted(current, corrected)}; verifying it as an update${undone}`,
  );
  await journal.write(entry);
}

/** @returns what was undone of what had been applied live, for a message; empty where nothing was. */
async function undoLiveContent(
  { ports: { host, relabel }, telemetry, signal }: StepContext,
  booted: NodeDeployment,
  current: Current,
): Promise<string> {
  if (current.mode !== 'Layered') return '';
  try {
    const names = await undoLive({ host, relabel, booted, signal });
    if (names.length === 0) return '';
    return `. Undid what had been applied live: ${names.join(', ')}`;
  } catch (error) {
    if (!(error instanceof LiveApplyRefused)) throw error;
    // What differs is reported as drift, with what can be done about it.
    telemetry.log.warn({ err: error }, 'What had been applied live could not be undone');
    return '';
  }
}

/** No update has told the boot before: any but this one. */
const BOOT_UNKNOWN = 'unknown';

/** A record may have named the right image by the wrong mode. */
function isAnotherDeployment(current: Current | undefined, booted: Current): current is Current {
  if (current === undefined) return false;
  return imageOf(current) !== imageOf(booted) || haveOtherArguments(current, booted);
}

function haveOtherArguments(one: Current, other: Current): boolean {
  if (one.mode !== 'Standard' || other.mode !== 'Standard') return false;
  return !sameList(one.kernelArguments, other.kernelArguments);
}

/** @returns one of two deployments as text, with what tells it from the other where its target doesn't. */
function formatBooted(one: Current, other: Current): string {
  const target = formatNodeTarget(one);
  if (one.mode !== 'Standard' || !haveOtherArguments(one, other)) return target;
  return `${target} with ${formatArguments(one.kernelArguments)}`;
}

function entryOf(next: Current, bootID: string): JournalEntry {
  const plan = {
    ...planOf(next),
    actions: [{ type: 'Reboot' as const }],
    source: 'the node rebooted without a grant',
  };
  return begin('rebooting', { plan, next }, { bootID, withoutGrant: true });
}

function firstBootEntry(next: Current): JournalEntry {
  const plan = { ...planOf(next), actions: [], source: 'the node came with it' };
  return begin('rebooting', { plan, next }, { bootID: BOOT_UNKNOWN, firstBoot: true });
}

/** Booted: there is nothing left that a grant could be given for. */
function planOf(next: Current): Pick<UpdatePlan, 'config' | 'image' | 'staged' | 'causes'> {
  const image = next.mode === 'Layered' ? next.image : undefined;
  return { config: next.config, ...present({ image }), staged: false, causes: [] };
}
