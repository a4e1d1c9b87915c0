import type { FailureReason } from '../../api/machine-config-node.ts';
import { type Drift, formatDrifts, formatLeftOut } from '../content/drift/drift.ts';
import { formatKernelArgumentDrifts, kernelArgumentDrifts } from '../content/drift/kernel-argument-drift.ts';
import type { ManagedContent } from '../content/entries/desired-tree.ts';
import { byCause } from '../content/managed-content.ts';
import type { Current } from '../records/current.ts';
import type { LeftOut } from '../records/left-out.ts';
import type { Observation } from './step.ts';

/** What differs from what a node runs. */
export interface NodeDrift {
  /** ConfigDrift where somebody has changed something; otherwise it is the last update that did not bring it. */
  readonly reason: Extract<FailureReason, 'ConfigDrift' | 'UpdateIncomplete'>;
  /** What differs and what can be done about it. */
  readonly why: string;
  /** Paths that somebody has changed. */
  readonly byHand: readonly Drift[];
}

/** What was found of a node that is to run something. */
export interface ComparedNode {
  readonly current: Current | undefined;
  /** What the node is to have on its disk. */
  readonly content: ManagedContent | undefined;
  /** Where the disk differs from that. */
  readonly drifts: readonly Drift[];
  /** See readLeftOut. */
  readonly leftOut: LeftOut | undefined;
}

/**
 * Says what differs from all that Shale manages on a node: on the disk, and of the kernel arguments of its boot.
 *
 * @returns undefined where nothing differs.
 */
export function nodeDrift(
  { current, content, drifts, leftOut }: ComparedNode,
  { kernelArguments, osBackend }: Pick<Observation, 'kernelArguments' | 'osBackend'>,
): NodeDrift | undefined {
  if (current === undefined || content === undefined) return undefined;
  const onDisk = byCause(drifts, leftOut);
  const ofBoot = kernelArgumentDrifts(namedArguments(current, content), kernelArguments);
  const changed = onDisk.byHand.length === 0 ? [] : [formatDrifts(onDisk.byHand)];
  const incomplete =
    onDisk.leftOut.length === 0 ? [] : [formatLeftOut(onDisk.leftOut, content.config.name, leftOut?.why)];
  const booted = [
    ...unreadableNotes(kernelArguments),
    ...(ofBoot.length === 0 ? [] : [formatKernelArgumentDrifts(ofBoot, content.config.name, osBackend)]),
  ];
  const texts = [...changed, ...incomplete, ...booted];
  if (texts.length === 0) return undefined;
  const isIncompleteOnly = texts.length === incomplete.length;
  const reason = isIncompleteOnly ? 'UpdateIncomplete' : 'ConfigDrift';
  return { reason, why: texts.join('. '), byHand: onDisk.byHand };
}

/** Without the note, an argument that no config names any more can't be told from the admin's. */
function unreadableNotes({ unreadable }: Observation['kernelArguments']): readonly string[] {
  return unreadable === undefined
    ? []
    : [
        `Kernel arguments that Shale added can't be told from the host's own: ${unreadable}. Compare those of the booted deployment with the config and delete the file`,
      ];
}

/**
 * @returns the kernel arguments that Shale brings. Those that an image has of its base don't count: no config names
 *   them, and a host that was installed without them was changed by nobody.
 */
function namedArguments(current: Current, { config }: ManagedContent): readonly string[] {
  return current.mode === 'Standard' ? current.kernelArguments : config.kernelArguments;
}
