import path from 'node:path';
import { type DisruptionAction, formatAction } from '../../api/disruption-action.ts';
import { nodePaths } from '../../api/names.ts';
import { present } from '../../api/present.ts';
import type { NodeConfig } from '../../machineconfig/node-config.ts';
import type { NodePorts } from '../host/host.ts';
import { type Current, nodeConfigOf, writtenConfigOf } from '../records/current.ts';
import { begin, type JournalEntryAt, leftOnDisk } from '../records/journal.ts';
import { endForce, isForced } from '../standard/drift.ts';
import type { ComparedHost } from '../standard/label-drift.ts';
import { type RestoreTarget, restoreLabels } from '../standard/restore-content.ts';
import { writeStateContent } from '../standard/state-content.ts';
import { verifyConfig } from '../standard/verify-config.ts';
import { writeConfig } from '../standard/write-config.ts';
import type { ActionLimits } from './act-on-services.ts';
import type { Observation } from './step.ts';
import { type StepContext, tryPublish } from './step-context.ts';
import type { Update } from './update.ts';

/** What carrying out an update needs. */
export interface UpdateWork {
  readonly ports: NodePorts;
  readonly current: Current | undefined;
  /**
   * An update before may have got any way: what the disk has is brought to the target without asking whether it is as
   * the record says.
   */
  readonly again: boolean;
  readonly actionLimits: ActionLimits;
  /** Called, and waited for, once a config's files are written. */
  readonly afterWriting: () => Promise<void>;
  /** Called, and waited for, before each action. */
  readonly beforeAction: (action: DisruptionAction) => Promise<void>;
  readonly signal: AbortSignal;
}

export function newEntry(update: Update, observation: Observation): JournalEntryAt<'applying'> {
  return begin('applying', update, {
    bootID: observation.bootID,
    leaseHolder: holderOf(observation),
    ...leftOnDisk(observation.journal, update),
  });
}

export function holderOf({ spec }: Observation): string {
  return spec.grant?.leaseHolder ?? '';
}

export function workOf(
  context: StepContext,
  entry: JournalEntryAt<'applying'>,
  observation: Observation,
  isAgain: boolean,
): UpdateWork {
  return {
    ports: context.ports,
    current: onDisk(observation, entry.next),
    again: isAgain,
    actionLimits: context.settings.actionLimits,
    afterWriting: () => context.journal.write({ ...entry, written: true }),
    beforeAction: (action) =>
      tryPublish(context, observation, {
        kind: 'applying',
        plan: entry.plan,
        doing: `Running ${formatAction(action)}`,
      }),
    signal: context.signal,
  };
}

/**
 * What the disk has: the record, unless an update that waits for its reboot has written its config over it.
 *
 * @param next what is to come. A switch to layered mode that was started live may have written content of the image's own:
 *   on the way back to standard mode the node is treated as a layered one, and gets a deployment without that.
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

/** How one mode brings content to the running root. */
export interface LiveWay {
  /** The configs of the disk and of the target; asked for before the disk is changed. */
  configs(): Promise<{ readonly from: NodeConfig; readonly to: NodeConfig }>;
  apply(): Promise<void>;
  /** @returns the paths that are not as desired. */
  differing(): Promise<readonly string[]>;
  /** Ensures that the next boot has the content, too. Called once nothing differs. */
  makeNextBoot(): Promise<void>;
}

/** The content is the rendered config's, written to the running root; a write that fails leaves all as it was. */
export function applyConfig(work: UpdateWork, next: Extract<Current, { mode: 'Standard' }>): LiveWay {
  const { ports, current, again, signal } = work;
  const { root } = ports.host;
  const target = writeTarget(ports);
  const to = nodeConfigOf(next.rendered);
  return {
    configs: async () => ({ from: writtenConfigOf(current), to }),
    apply: async () => {
      const isAllowed = await isForced(root);
      const force = again || isAllowed;
      await writeConfig(target, { from: writtenConfigOf(current), to, force }, { signal });
      // The permission covers labels of files that stay as they are.
      if (isAllowed) await restoreLabels(target, { delivery: 'Standard', config: to }, signal);
      await writeStateContent(root, { delivery: 'Standard', config: to });
      await work.afterWriting();
      await endForce(root);
    },
    differing: async () => (await verifyConfig(root, to)).map((drift) => drift.path),
    // The booted deployment is the next boot.
    makeNextBoot: async () => undefined,
  };
}

/** @returns the running host, to be compared with what it runs. */
export function comparedHost({ host: { root }, wrongLabels }: NodePorts): ComparedHost {
  return { root, wrongLabels };
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
