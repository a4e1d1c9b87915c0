import type { DisruptionCause } from '../../api/disruption-action.ts';
import type { UpdatePlan } from '../../api/machine-config-node.ts';
import { present } from '../../api/present.ts';
import { needsKernelStart } from '../../disruption/kernel-start.ts';
import { sameList } from '../../machineconfig/diff.ts';
import { kernelArgumentDrifts } from '../content/drift/kernel-argument-drift.ts';
import type { FetchedImage, NodeDeployment } from '../os/backend.ts';
import type { Preparation, Requirements } from '../steps/preparation.ts';
import { reboots } from '../steps/update.ts';
import { rebootBetween } from './reboot-words.ts';

/** Everything that the choice between a full reboot and one of the userspace alone depends on. */
export interface RebootQuestion {
  /** Whether the pool allows soft reboots at all. */
  readonly isAllowed: boolean;
  /** Whether an update was begun live that only a reboot ends: what hangs may hang on in a soft one. */
  readonly isStuck: boolean;
  readonly causes: readonly DisruptionCause[];
  readonly booted: Pick<NodeDeployment, 'kernelArguments'>;
  /** What the kernel was started with; absent where that isn't known. */
  readonly running?: readonly string[];
  /** What is to be booted; undefined where that is the booted deployment. */
  readonly next: Pick<NodeDeployment, 'kernelArguments' | 'canSoftReboot'> | undefined;
}

export type RebootChoice =
  | { readonly kind: 'soft' }
  /** `why`: what keeps it from being a soft one, where the pool allows those. */
  | { readonly kind: 'full'; readonly why?: string };

/**
 * Chooses how an update reboots that has to. A soft reboot only where the pool allows it, the tool says that the kernel
 * can go on, and nothing is known to change that only a kernel's own start takes up.
 */
export function chooseReboot(question: RebootQuestion): RebootChoice {
  const { isAllowed, isStuck, causes, booted, next } = question;
  if (!isAllowed) return { kind: 'full' };
  if (isStuck) return full('a live update was started and could not be finished');
  if (next === undefined) return full('the booted deployment stays the same');
  if (!sameList(booted.kernelArguments, next.kernelArguments)) return full('kernel arguments change');
  const notRunning = argumentNotRunning(next, question.running);
  if (notRunning !== undefined) return full(`the kernel was started without ${notRunning}`);
  const forKernel = causes.find(needsKernelStart);
  if (forKernel !== undefined) return full(`${forKernel.subject} takes effect only when the kernel starts`);
  if (next.canSoftReboot !== true) return full('the host does not report that its kernel can keep running');
  return { kind: 'soft' };
}

/** Somebody may have changed the bootloader entry since the boot: a kernel that goes on never sees that. */
function argumentNotRunning(
  { kernelArguments }: Pick<NodeDeployment, 'kernelArguments'>,
  running: readonly string[] | undefined,
): string | undefined {
  if (running === undefined) return undefined;
  return kernelArgumentDrifts(kernelArguments, { entry: kernelArguments, running })[0]?.argument;
}

function full(why: string): RebootChoice {
  return { kind: 'full', why };
}

/** @returns the plan of an update that reboots, with how it does. */
export function planReboot<T extends Pick<UpdatePlan, 'source'>>(
  plan: T,
  choice: RebootChoice,
): T & Pick<UpdatePlan, 'softReboot'> {
  if (choice.kind === 'soft') return { ...plan, softReboot: true };
  return choice.why === undefined ? plan : rebootFully(plan, choice.why);
}

/** @returns the plan by way of a full reboot. @param why it can't be a soft one. */
export function rebootFully<T extends Pick<UpdatePlan, 'source' | 'softReboot'>>(plan: T, why: string): T {
  const { softReboot: _soft, ...rest } = plan;
  return { ...(rest as T), source: `${plan.source}; no soft reboot: ${why}` };
}

/** @returns the plan with how the node has rebooted between two boots, whatever was planned. */
export function asRebooted(plan: UpdatePlan, before: string, after: string): UpdatePlan {
  const { softReboot: _planned, ...rest } = plan;
  return { ...rest, ...rebootBetween(before, after) };
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
  const running = present({ running: runningArguments });
  return planReboot(
    required,
    chooseReboot({ isAllowed: true, isStuck: stuck !== undefined, causes, booted, next, ...running }),
  );
}
