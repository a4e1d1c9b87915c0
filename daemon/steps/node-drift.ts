import type { FailureReason } from '../../api/machine-config-node.ts';
import type { Current } from '../records/current.ts';
import type { LeftOut } from '../records/left-out.ts';
import { formatDrifts, formatLeftOut } from '../standard/drift.ts';
import { formatKernelArgumentDrifts, kernelArgumentDrifts } from '../standard/kernel-argument-drift.ts';
import { type ComparedHost, verifyWithLabels } from '../standard/label-drift.ts';
import { byCause, type ManagedContent } from '../standard/managed-content.ts';
import type { Observation } from './step.ts';

/** What differs from what a node runs. */
export interface NodeDrift {
  /** ConfigDrift where somebody has changed something; otherwise it is the last update that did not bring it. */
  readonly reason: Extract<FailureReason, 'ConfigDrift' | 'UpdateIncomplete'>;
  /** What differs and what can be done about it. */
  readonly why: string;
}

/**
 * Compares all that Shale manages on a node with what the node runs: the disk, and the kernel arguments of its boot.
 *
 * @param host the running one. @param node what it is to run, and the content of that. @param leftOut see readLeftOut.
 * @returns undefined where nothing differs. @throws what verifyWithLabels throws.
 */
export async function nodeDrift(
  host: ComparedHost,
  node: { readonly current: Current | undefined; readonly content: ManagedContent | undefined },
  { kernelArguments, osBackend }: Pick<Observation, 'kernelArguments' | 'osBackend'>,
  leftOut: LeftOut | undefined,
  signal: AbortSignal,
): Promise<NodeDrift | undefined> {
  const { current, content } = node;
  if (current === undefined || content === undefined) return undefined;
  const onDisk = byCause(await verifyWithLabels(host, content, signal), leftOut);
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
  return { reason: isIncompleteOnly ? 'UpdateIncomplete' : 'ConfigDrift', why: texts.join('. ') };
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
 * @returns the kernel arguments that Shale brings. Those that an image has of its base don't count: no config names them, and
 *   a host that was installed without them was changed by nobody.
 */
function namedArguments(current: Current, { config }: ManagedContent): readonly string[] {
  return current.mode === 'Standard' ? current.kernelArguments : config.kernelArguments;
}
