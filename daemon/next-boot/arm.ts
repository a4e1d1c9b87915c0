import { etcDigest } from '../files/etc-trees.ts';
import { readMark } from '../host/boot-watchdog/watchdog-files.ts';
import { begin } from '../records/journal.ts';
import { readLastUpdate } from '../records/last-update.ts';
import type { Phase } from '../steps/phase.ts';
import { guardNextBoot, makeNextBoot, settleNextBoot } from '../steps/prepare-boot.ts';
import type { Observation } from '../steps/step.ts';
import { again, publish, recordEvent, type StepContext, type StepOutcome } from '../steps/step-context.ts';
import { formatNodeTarget, type PreparedUpdate } from '../steps/update.ts';
import {
  type ArmedBoot,
  type ArmingStep,
  preparedOf,
  readArmedBoot,
  removeArmedBoot,
  writeArmedBoot,
} from './armed-boot.ts';

/**
 * Makes a target the node's next boot, with the watchdog in it, and reboots nothing. The running system stays as it is,
 * so it takes no lease and no grant.
 *
 * The record is written last and removed first. What boots without it, because the power was lost in between, is a boot
 * that nobody granted.
 *
 * @throws what makeNextBoot throws; the next boot is what the node runs then.
 */
async function armNextBoot(
  context: StepContext,
  update: PreparedUpdate,
  observation: Observation,
): Promise<StepOutcome> {
  const { memory, ports, signal } = context;
  const { host, backend } = ports;
  await removeArmedBoot(host.root);
  try {
    // Before the merge: what changes during it is found by the next look.
    const etc = await etcDigest(host.root, signal);
    const work = { ports, current: observation.current, disk: 'AsRecorded', signal } as const;
    await makeNextBoot(work, update, { scope: 'etc' });
    await guardNextBoot(context);
    const { staged } = await backend.status(signal);
    if (staged === undefined) throw new TypeError(`${formatNodeTarget(update.next)} is not the next boot`);
    await writeArmedBoot(host.root, update, { bootID: observation.bootID, deployment: staged.id, etc });
  } catch (error) {
    memory.prepared = undefined;
    context.telemetry.log.warn({ err: error }, 'Could not make the target the next boot');
    if (!signal.aborted) await settleNextBoot(backend, observation.current, signal);
    throw error;
  }
  if (observation.armed === undefined)
    recordEvent(context, 'Armed', `${formatNodeTarget(update.next)} applies at the node's next reboot`);
  return again;
}

/** The target is the next boot: keeps it that way, with the /etc that the node has by now. */
async function stayArmed(
  context: StepContext,
  { update, armed }: { readonly update: PreparedUpdate; readonly armed: ArmedBoot },
  observation: Observation,
): Promise<StepOutcome> {
  const { ports, signal } = context;
  // ostree merged /etc when the node was armed; what an admin, or Shale, has changed since would be lost.
  if ((await etcDigest(ports.host.root, signal)) !== armed.etc) {
    context.telemetry.log.info('Making the target the next boot again: /etc has changed');
    return armNextBoot(context, update, observation);
  }
  await publish(context, observation, armedPhase(armed));
  return { kind: 'wait', ms: ETC_LOOK_MS };
}

/** @returns the phase of a node whose next boot is its target. */
export function armedPhase({ plan }: ArmedBoot): Phase {
  return { kind: 'armed', plan: { ...plan, nextBoot: true } };
}

/** What somebody changes in /etc for longer than this before they reboot is in the target. */
const ETC_LOOK_MS = 60_000;

/** Makes what the node runs its next boot again. What was staged is staged again, if it is still the target. */
async function disarm(context: StepContext, { current }: Observation): Promise<StepOutcome> {
  const { memory, ports, signal } = context;
  const armed = await readArmedBoot(ports.host.root);
  await removeArmedBoot(ports.host.root);
  memory.prepared = undefined;
  memory.settledFor = undefined;
  await settleNextBoot(ports.backend, current, signal);
  if (armed !== undefined)
    recordEvent(context, 'Disarmed', `${formatNodeTarget(armed.next)} is no longer the node's next boot`);
  return again;
}

/** @throws what keeps the step from being taken; it is decided again then. */
export function takeArmingStep(
  context: StepContext,
  step: ArmingStep,
  observation: Observation,
): Promise<StepOutcome> {
  switch (step.kind) {
    case 'arm':
      return armNextBoot(context, step.update, observation);
    case 'stayArmed':
      return stayArmed(context, step, observation);
    case 'disarm':
      return disarm(context, observation);
  }
}

/**
 * Compares the boot with what was armed, after a restart of the daemon or of the node. A target that was armed and
 * booted is an update that was permitted: it is verified like one, and rolled back from like one; so is one that the
 * host's watchdog has rolled back from.
 *
 * The journal is written before the record goes, so that a daemon that is killed goes on verifying.
 *
 * @returns whether the journal has an update now.
 * @throws RecordError, and what the image tool throws.
 */
export async function takeUpArmedBoot({
  ports: { host, backend },
  journal,
  memory,
  signal,
}: StepContext): Promise<boolean> {
  const armed = await readArmedBoot(host.root);
  if (armed === undefined) return false;
  const bootID = await host.bootID();
  if (armed.bootID === bootID) {
    memory.prepared = preparedOf(armed);
    return false;
  }
  const { booted } = await backend.status(signal);
  const mark = await readMark(host.root);
  const isKnown = (await readLastUpdate(host.root))?.bootIDAfter === bootID;
  const wasBooted = booted.id === armed.deployment || mark?.deployment === armed.deployment;
  const takesUp = wasBooted && !isKnown;
  if (takesUp) {
    // Booted: there is nothing left that a grant could be given for. No other node takes its place before it is
    // verified.
    const plan = { ...armed.plan, staged: false, nextBoot: true };
    await journal.write(begin('rebooting', { plan, next: armed.next }, { bootID: armed.bootID }));
  }
  await removeArmedBoot(host.root);
  return takesUp;
}
