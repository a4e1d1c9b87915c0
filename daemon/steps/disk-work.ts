import path from 'node:path';
import { nodePaths } from '../../api/names.ts';
import { present } from '../../api/present.ts';
import { endForce, isForced } from '../content/drift/drift.ts';
import { standardContent } from '../content/managed-content.ts';
import { type RestoreTarget, restoreLabels } from '../content/write/restore-content.ts';
import { writeContent } from '../content/write/write-content.ts';
import type { NodePorts } from '../host/host.ts';
import { type Current, type StandardCurrent, writtenConfigOf } from '../records/current.ts';
import type { JournalEntryAt } from '../records/journal.ts';
import type { Observation } from './step.ts';
import type { StepContext } from './step-context.ts';

/** What changing a node's disk needs. */
export interface DiskWork {
  readonly ports: NodePorts;
  /** What the disk has. */
  readonly current: Current | undefined;
  /**
   * Uncertain: an interrupted update may have come any way, so the disk is brought to the target without asking whether
   * it is as the record says.
   */
  readonly disk: 'AsRecorded' | 'Uncertain';
  /** Called, and waited for, once a config's files are written to the running root. */
  readonly onWritten?: () => Promise<void>;
  readonly signal: AbortSignal;
}

/** @returns the work of an update that begins. */
export function newWork(
  context: StepContext,
  entry: JournalEntryAt<'applying'>,
  observation: Observation,
): DiskWork {
  const { journal, ports, signal } = context;
  return {
    ports,
    current: onDisk(observation, entry.next),
    disk: 'AsRecorded',
    onWritten: () => journal.write({ ...entry, written: true }),
    signal,
  };
}

/** @returns the work of an update that was begun before; how far it came is not known. */
export function resumedWork(...begun: Parameters<typeof newWork>): DiskWork {
  return { ...newWork(...begun), disk: 'Uncertain' };
}

/**
 * What the disk has: the record, unless an update that waits for its reboot has written its config over it.
 *
 * @param next what is to come. A switch to layered mode that was started live may have written content of the image's
 *   own: if the target is in standard mode again, the node is treated as a layered one, and gets a deployment without
 *   that.
 */
function onDisk({ current, journal, bootedImage }: Observation, next: Current): Current | undefined {
  if (journal?.step !== 'applying') return current;
  const { written, onDisk: before } = journal;
  const leavesImage =
    current?.mode === 'Standard' && next.mode === 'Standard' && next.baseImage !== undefined;
  const started = [journal.next, before].find((each) => each?.mode === 'Layered');
  if (leavesImage && started !== undefined) return started;
  const config = written === true ? journal.next : before;
  return config === undefined ? current : writtenOver(current, config, bootedImage);
}

/**
 * What the disk has once a config of standard mode was written to it, and no other deployment is booted.
 *
 * @param bootedImage the image, for a node that Shale had not configured.
 */
export function writtenOver(
  current: Current | undefined,
  next: Current,
  bootedImage?: string,
): Current | undefined {
  if (next.mode !== 'Standard') return current;
  const { config, rendered } = next;
  const booted = present({ baseImage: bootedImage });
  const kept = current?.mode === 'Standard' ? current : { kernelArguments: [], ...booted };
  return { version: 1, mode: 'Standard', ...kept, config, rendered };
}

/** Writes a config of standard mode to the running root. A write that fails leaves all as it was. */
export async function writeRunningConfig(
  { ports, current, disk, onWritten, signal }: DiskWork,
  next: StandardCurrent,
): Promise<void> {
  const { root } = ports.host;
  const target = writeTarget(ports);
  const from = { delivery: 'Standard', config: writtenConfigOf(current) } as const;
  const to = standardContent(next);
  const isAllowed = await isForced(root);
  const force = disk === 'Uncertain' || isAllowed;
  await writeContent(target, { from, to, force }, { signal });
  // The permission covers labels of files that stay as they are.
  if (isAllowed) await restoreLabels(target, to, signal);
  await onWritten?.();
  await endForce(root);
}

/** @returns where standard mode writes: the running root. */
export function writeTarget({
  host: { root },
  setPasswords,
  relabel,
  wrongLabels,
}: NodePorts): RestoreTarget {
  return { root, stateDir: path.join(root, nodePaths.state), setPasswords, relabel, wrongLabels };
}
