import type { Grant, MachineConfigNodeSpec, UpdatePlan } from '../../api/machine-config-node.ts';
import {
  type DigestedPullspec,
  DigestedPullspecSchema,
  parseDigestedPullspec,
} from '../../api/references.ts';
import { sameList } from '../../machineconfig/diff.ts';
import { splitKernelArguments } from '../../machineconfig/kernel-arguments.ts';
import { noPackages, samePackages } from '../../machineconfig/os-packages.ts';
import { argumentsInEntry } from '../content/drift/kernel-argument-drift.ts';
import type { ExtraPackages, NodeDeployment } from '../os/backend.ts';
import { type Current, type LayeredCurrent, packagesOf, type StandardCurrent } from '../records/current.ts';

/** What the operator wants of the node. */
export type Target =
  | { readonly mode: 'Layered'; readonly config: string; readonly image: DigestedPullspec }
  /** `osImage` absent: the OS image is left as it is, or, coming from a layered image, is that image's base. */
  | { readonly mode: 'Standard'; readonly config: string; readonly osImage?: string | undefined };

/** @returns the target that a MachineConfigNode's spec names. */
export function targetOf(spec: MachineConfigNodeSpec): Target {
  const config = spec.configVersion.desired;
  if (spec.configImage !== undefined) {
    // The API server has checked the form by the CRD's pattern.
    return { mode: 'Layered', config, image: spec.configImage.desiredImage as DigestedPullspec };
  }
  return { mode: 'Standard', config, osImage: spec.osImage };
}

/**
 * @returns whether the node runs the target already. A node in standard mode that booted other kernel arguments than
 *   its config names doesn't: they were staged for a target that was withdrawn.
 */
export function isAt(target: Target, current: Current | undefined): boolean {
  if (current === undefined || current.mode !== target.mode || current.config !== target.config) return false;
  if (target.mode === 'Layered') return current.mode === 'Layered' && current.image === target.image;
  if (current.mode === 'Standard' && !sameList(current.kernelArguments, argumentsOf(current))) return false;
  return target.osImage === undefined || target.osImage === '' || current.baseImage === target.osImage;
}

function argumentsOf({ rendered }: StandardCurrent): readonly string[] {
  return splitKernelArguments(rendered.spec.kernelArguments ?? []);
}

/** @returns whether a plan or a grant is for this target and no other. */
export function isFor(
  given: { readonly config: string; readonly image?: string | undefined },
  target: Target,
): boolean {
  return given.config === target.config && given.image === imageOfTarget(target);
}

/** @returns the image that the target names; undefined in standard mode. */
export function imageOfTarget(target: Target): DigestedPullspec | undefined {
  return target.mode === 'Layered' ? target.image : undefined;
}

/**
 * @param target what the operator wants, or what the node runs once an update is over.
 * @returns it as text, for logs, events and conditions.
 */
export function formatNodeTarget(target: Target | Current): string {
  return target.mode === 'Layered'
    ? `${target.config} in ${target.image}`
    : `${target.config} in standard mode`;
}

/** A grant to disrupt also covers a live update; a grant for another target covers nothing. */
export function isGranted(
  { grant }: Pick<MachineConfigNodeSpec, 'grant'>,
  target: Target,
  level: Grant['level'],
): boolean {
  if (grant === undefined || !isFor(grant, target)) return false;
  return level === 'Live' || grant.level === 'Disrupt';
}

/** @returns kernel arguments that Shale added, as a clause of a sentence. */
export function formatArguments(kernelArguments: readonly string[]): string {
  if (kernelArguments.length === 0) return 'no kernel arguments of a config';
  return `the kernel arguments ${kernelArguments.join(' ')}`;
}

/** An update as it was worked out: what it asks of the node, and what the node runs once it is over. */
export interface Update {
  readonly plan: UpdatePlan;
  readonly next: Current;
}

/** An update that is on the disk and waits for its grant. */
export interface PreparedUpdate extends Update, Basis {}

/** What an update was worked out under, beside its target: under another it has to be worked out again. */
interface Basis {
  /** The policies that its actions follow. */
  readonly policyDigest: string | undefined;
  /** Whether the pool allowed soft reboots. */
  readonly softRebootAllowed: boolean;
}

/** @returns what an update is worked out under now. */
export function basisOf({ policyDigest, softReboot = false }: MachineConfigNodeSpec): Basis {
  return { policyDigest, softRebootAllowed: softReboot };
}

/** @returns whether an update was worked out under this. */
export function isBasedOn(update: Basis, { policyDigest, softRebootAllowed }: Basis): boolean {
  return update.policyDigest === policyDigest && update.softRebootAllowed === softRebootAllowed;
}

/** @returns whether the update leads to this target and no other. */
export function leadsTo({ plan, next }: Update, target: Target): boolean {
  if (!isFor(plan, target) || next.mode !== target.mode) return false;
  const osImage = target.mode === 'Standard' ? (target.osImage ?? '') : '';
  return osImage === '' || next.baseImage === osImage;
}

/** @returns whether the update ends with a reboot. */
export function reboots({ plan }: { readonly plan: Pick<UpdatePlan, 'actions'> }): boolean {
  return plan.actions.some(({ type }) => type === 'Reboot');
}

/** @returns the same update by way of a reboot. @param failure why it could not be applied live, as text. */
export function byReboot<T extends Update>(update: T, failure: string): T {
  const source = `could not be applied live: ${failure}`;
  const liveFailure = failure.slice(0, LONGEST_FAILURE);
  return { ...update, plan: { ...update.plan, actions: [{ type: 'Reboot' }], source, liveFailure } };
}

/** Conditions of the node and of its pool repeat it; the event and the log have all of it. */
const LONGEST_FAILURE = 1_024;

/** The deployment that an update needs as the next boot. */
export interface DeploymentChange {
  readonly image: DigestedPullspec;
  readonly extraKernelArguments: { readonly remove: readonly string[]; readonly add: readonly string[] };
  readonly extraPackages: ExtraPackages;
}

/**
 * What an update changes of the operating system itself.
 *
 * @param current what the node runs. @param bootedImage what it booted, where that is known.
 * @returns undefined when the booted deployment stays: an update in standard mode that only writes files.
 * @throws TypeError when another deployment is needed and it isn't known of which image, or when the image with its
 *   extensions is not named by digest.
 */
export function deploymentChange(
  current: Current | undefined,
  bootedImage: string | undefined,
  next: Current,
): DeploymentChange | undefined {
  if (next.mode === 'Layered') return imageChange(current, next);
  const remove = current?.mode === 'Standard' ? current.kernelArguments : [];
  const former = packagesOf(current);
  const baseImage = current === undefined ? bootedImage : current.baseImage;
  const stays =
    current?.mode !== 'Layered' &&
    baseImage === next.baseImage &&
    sameList(remove, next.kernelArguments) &&
    samePackages(former, packagesOf(next));
  if (stays) return undefined;
  if (next.baseImage === undefined) {
    throw new TypeError(
      `${next.config}: changes kernel arguments or packages or leaves layering, and neither the node nor spec.osImage says on which OS image; expected spec.osImage by digest`,
    );
  }
  const image = parseDigestedPullspec(next.baseImage);
  return {
    image,
    extraKernelArguments: { remove, add: next.kernelArguments },
    extraPackages: { remove: former, add: packagesOf(next), ...repositoryOf(next) },
  };
}

/**
 * @returns the deployment of a layered image: all that standard mode had added to the host is in the image, or gone.
 */
export function imageChange(
  current: Current | undefined,
  { image }: Pick<LayeredCurrent, 'image'>,
): DeploymentChange {
  const remove = current?.mode === 'Standard' ? current.kernelArguments : [];
  return {
    image: parseDigestedPullspec(image),
    extraKernelArguments: { remove, add: [] },
    extraPackages: { remove: packagesOf(current), add: noPackages },
  };
}

/** The image that MCO takes extensions and other kernels from. */
function repositoryOf(next: StandardCurrent): Pick<ExtraPackages, 'repository'> {
  const { baseOSExtensionsContainerImage: name = '' } = next.rendered.spec;
  if (name === '' || packagesOf(next).installed.length === 0) return {};
  return { repository: parseDigestedPullspec(name) };
}

/** What a booted deployment says of its kernel arguments. */
type DeployedArguments = Pick<
  NodeDeployment,
  'kernelArguments' | 'addedKernelArguments' | 'unreadableArgumentNotes'
>;

/**
 * What a node in standard mode runs, with the kernel arguments of its config that the booted deployment has: somebody
 * may have changed them since Shale made it. An update that reboots anyway starts from there, so that what it boots has
 * the arguments of its config, and a rollback brings back what ran before. One that doesn't reboot leaves the
 * difference as drift.
 *
 * @param current what the node's record says.
 * @returns `current` itself where nothing differs, or where no deployment could be made: of an OS image that is not
 *   known by digest, or while the note of what Shale added can't be read.
 */
export function asDeployed<T extends Current | undefined>(current: T, booted: DeployedArguments): T {
  if (current?.mode !== 'Standard' || booted.unreadableArgumentNotes !== undefined) return current;
  if (!DigestedPullspecSchema.safeParse(current.baseImage).success) return current;
  const kernelArguments = [
    ...(booted.addedKernelArguments ?? argumentsInEntry(current.kernelArguments, booted.kernelArguments)),
  ];
  return sameList(kernelArguments, current.kernelArguments) ? current : { ...current, kernelArguments };
}
