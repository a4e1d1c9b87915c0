import type { DisruptionCause } from '../../api/disruption-action.ts';
import type { UpdatePlan } from '../../api/machine-config-node.ts';
import { needsKernelStart } from '../../disruption/kernel-start.ts';
import { sameList } from '../../machineconfig/diff.ts';
import { kernelArgumentDrifts } from '../content/drift/kernel-argument-drift.ts';
import type { FetchedImage, NodeDeployment } from '../os/backend.ts';
import type { Preparation, Requirements } from '../steps/preparation.ts';
import { reboots } from '../steps/update.ts';

/** Everything that decides whether a reboot of the userspace alone is enough, where the pool allows one. */
export interface RebootQuestion {
  /** Whether a live update began that only a reboot ends: a hung process may survive a soft reboot. */
  readonly isStuck: boolean;
  readonly causes: readonly DisruptionCause[];
  readonly booted: Pick<NodeDeployment, 'kernelArguments'>;
  /** What the kernel was started with; absent where that isn't known. */
  readonly running: readonly string[] | undefined;
  /** What is to be booted; undefined where that is the booted deployment. */
  readonly next: Pick<NodeDeployment, 'kernelArguments' | 'canSoftReboot'> | undefined;
}

/**
 * @returns why an update has to reboot fully; undefined where the tool says that the kernel can go on, and nothing is
 *   known to change that takes effect only when the kernel starts.
 */
export function whyRebootFully(question: RebootQuestion): string | undefined {
  const { isStuck, causes, booted, next } = question;
  if (isStuck) return 'a live update was started and could not be finished';
  if (next === undefined) return 'the booted deployment stays the same';
  if (!sameList(booted.kernelArguments, next.kernelArguments)) return 'kernel arguments change';
  const notRunning = argumentNotRunning(next, question.running);
  if (notRunning !== undefined) return `the kernel was started without ${notRunning}`;
  const forKernel = causes.find(needsKernelStart);
  if (forKernel !== undefined) return `${forKernel.subject} takes effect only when the kernel starts`;
  return next.canSoftReboot === true
    ? undefined
    : 'the host does not report that its kernel can keep running';
}

/** Somebody may have changed the bootloader entry since the boot: a kernel that goes on never sees that. */
function argumentNotRunning(
  { kernelArguments }: Pick<NodeDeployment, 'kernelArguments'>,
  running: readonly string[] | undefined,
): string | undefined {
  if (running === undefined) return undefined;
  return kernelArgumentDrifts(kernelArguments, { entry: kernelArguments, running })[0]?.argument;
}

/** @returns the plan by way of a full reboot. @param why it can't be a soft one. */
export function rebootFully<T extends Pick<UpdatePlan, 'source' | 'softReboot'>>(plan: T, why: string): T {
  const { softReboot: _soft, ...rest } = plan;
  return { ...(rest as T), source: `${plan.source}; no soft reboot: ${why}` };
}

/**
 * @param next what an update that reboots will boot; undefined where that is the booted deployment.
 * @returns what it asks, with how it reboots. @throws what OsBackend.status throws.
 */
export async function withRebootChoice(
  { ports, spec, stuck, runningArguments, signal }: Preparation,
  required: Requirements,
  next: FetchedImage | undefined,
): Promise<Requirements> {
  if (spec.softReboot !== true || !reboots({ plan: required })) return required;
  const { booted } = await ports.backend.status(signal);
  const { causes } = required;
  const question = { isStuck: stuck !== undefined, causes, booted, next, running: runningArguments };
  const why = whyRebootFully(question);
  return why === undefined ? { ...required, softReboot: true } : rebootFully(required, why);
}
