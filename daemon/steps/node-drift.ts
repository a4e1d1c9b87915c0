import type { Current } from '../records/current.ts';
import { formatDrifts } from '../standard/drift.ts';
import { formatKernelArgumentDrifts, kernelArgumentDrifts } from '../standard/kernel-argument-drift.ts';
import { type ComparedHost, verifyWithLabels } from '../standard/label-drift.ts';
import type { ManagedContent } from '../standard/managed-content.ts';
import type { Observation } from './step.ts';

/**
 * Compares all that Shale manages on a node with what the node runs: the disk, and the kernel arguments of its boot.
 *
 * @param host the running one. @param node what it is to run, and the content of that.
 * @returns what differs and what can be done about it, as text; undefined where nothing does.
 * @throws what verifyWithLabels throws.
 */
export async function nodeDrift(
  host: ComparedHost,
  node: { readonly current: Current | undefined; readonly content: ManagedContent | undefined },
  { kernelArguments, osBackend }: Pick<Observation, 'kernelArguments' | 'osBackend'>,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { current, content } = node;
  if (current === undefined || content === undefined) return undefined;
  const onDisk = await verifyWithLabels(host, content, signal);
  const ofBoot = kernelArgumentDrifts(namedArguments(current, content), kernelArguments);
  const texts = [
    ...(onDisk.length === 0 ? [] : [formatDrifts(onDisk)]),
    ...unreadableNotes(kernelArguments),
    ...(ofBoot.length === 0 ? [] : [formatKernelArgumentDrifts(ofBoot, content.config.name, osBackend)]),
  ];
  return texts.length === 0 ? undefined : texts.join('. ');
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
