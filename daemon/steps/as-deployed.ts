import { DigestedPullspecSchema } from '../../api/references.ts';
import { sameList } from '../../machineconfig/diff.ts';
import type { NodeDeployment } from '../os/backend.ts';
import type { Current } from '../records/current.ts';
import { argumentsInEntry } from '../standard/kernel-argument-drift.ts';

/** What a booted deployment says of its kernel arguments. */
type DeployedArguments = Pick<
  NodeDeployment,
  'kernelArguments' | 'addedKernelArguments' | 'unreadableArgumentNotes'
>;

/**
 * What a node in standard mode runs, with the kernel arguments of its config that the booted deployment has: somebody may have
 * changed them since Shale made it. An update that reboots anyway starts from there, so that what it boots has the arguments of
 * its config, and a rollback brings back what ran before. One that doesn't reboot leaves the difference as drift.
 *
 * @param current what the node's record says.
 * @returns `current` itself where nothing differs, or where no deployment could be made: of an OS image that is not known by
 *   digest, or while the note of what Shale added can't be read.
 */
export function asDeployed<T extends Current | undefined>(current: T, booted: DeployedArguments): T {
  if (current?.mode !== 'Standard' || booted.unreadableArgumentNotes !== undefined) return current;
  if (!DigestedPullspecSchema.safeParse(current.baseImage).success) return current;
  const kernelArguments = [
    ...(booted.addedKernelArguments ?? argumentsInEntry(current.kernelArguments, booted.kernelArguments)),
  ];
  return sameList(kernelArguments, current.kernelArguments) ? current : { ...current, kernelArguments };
}
