import { uptime } from 'node:os';
import { errorMessage } from '../../api/error-message.ts';
import { present } from '../../api/present.ts';
import { verifyWithLabels } from '../content/drift/label-drift.ts';
import { carriedBy, managedContent } from '../content/managed-content.ts';
import { restoreLabels } from '../content/write/restore-content.ts';
import { UndoError, writeContent } from '../content/write/write-content.ts';
import { findHealthChecks, type HealthCheck } from '../host/health-checks.ts';
import { asRebooted } from '../reboot/reboot-words.ts';
import { advance, type JournalEntry, type JournalEntryAt } from '../records/journal.ts';
import { writeLastUpdate } from '../records/last-update.ts';
import { writeLeftOut } from '../records/left-out.ts';
import { writeTarget } from './disk-work.ts';
import { endChangedTarget, endUnhealthyTarget, finish } from './end-update.ts';
import { type Checks, decideHealth, type KubeletBoot, lookAtKubelet, MOST_BOOTS } from './health.ts';
import { requireSigned } from './image-policy.ts';
import { leftOutOf } from './left-out.ts';
import { nodeDrift } from './node-drift.ts';
import type { Phase } from './phase.ts';
import { recordReboot } from './spans.ts';
import type { Observation } from './step.ts';
import {
  again,
  publish,
  recordEvent,
  recordWarning,
  type StepContext,
  type StepOutcome,
  tryPublish,
} from './step-context.ts';
import { deploymentChange, isFor, targetOf } from './update.ts';

/** Between two looks at what is not well yet: often at first, when most nodes come up, then ever less. */
const FIRST_RETRY_MS = 2_000;
const LONGEST_RETRY_MS = 15_000;
/** Between two looks at a node that runs its target and was not healthy in time. */
const RECHECK_MS = 60_000;
/** A check may take so long even when the time of all is over: the daemon may have come late. */
const LEAST_CHECK_MS = 10_000;

/**
 * Checks that a node that has booted its target is healthy: its own checks, then the kubelet. It ends the update when
 * it is, and begins the rollback when it was not in time.
 */
export async function verifyBoot(
  context: StepContext,
  entry: JournalEntry,
  observation: Observation,
): Promise<StepOutcome> {
  const { client, journal, signal } = context;
  const { healthLimits, nodeName } = context.settings;
  const plan = asRebooted(entry.plan, entry.bootID, observation.bootID);
  const reportVerifying = (
    doing: string,
    more: Pick<Phase & { kind: 'verifying' }, 'failed' | 'leftMs'> = {},
  ) => tryPublish(context, observation, { kind: 'verifying', plan, doing, ...more });
  const verifying = await startOrResume(context, entry, observation.bootID);
  if (verifying !== entry) {
    await journal.write(verifying);
    // Without a lease somebody else has rebooted the node.
    if (entry.step !== 'verifying' && entry.leaseHolder !== undefined) recordReboot(context, entry);
  }
  const { sinceMs, boots } = verifying.verifying;
  const elapsedMs = () => uptimeMs() - sinceMs;
  if (verifying !== entry) {
    const leftMs = healthLimits.checksMs - elapsedMs();
    await reportVerifying("Running the node's health checks and waiting for the kubelet", { leftMs });
  }
  // A node that goes down by its checks is not to run them for ever.
  const checks =
    boots > MOST_BOOTS
      ? passed
      : await runChecks(context, observation.bootID, healthLimits.checksMs - elapsedMs());
  const kubelet = await lookAtKubelet(client, nodeName, await bootOf(context, observation), signal);
  const verdict = decideHealth({ boots, checks, kubelet, elapsedMs: elapsedMs() }, healthLimits);
  switch (verdict.kind) {
    case 'wait':
      await reportVerifying(verdict.why, {
        ...(checks.kind === 'failed' ? { failed: { check: checks.name, output: checks.why } } : {}),
        ...(verdict.limitMs === undefined ? {} : { leftMs: verdict.limitMs - elapsedMs() }),
      });
      return { kind: 'wait', ms: Math.min(Math.max(elapsedMs() / 4, FIRST_RETRY_MS), LONGEST_RETRY_MS) };
    case 'healthy':
      return endHealthy(context, verifying, observation, reportVerifying);
    case 'unhealthy':
      return endUnhealthy(context, verifying, observation, verdict.why);
  }
}

async function endHealthy(
  context: StepContext,
  entry: JournalEntryAt<'verifying'>,
  observation: Observation,
  report: (doing: string) => Promise<void>,
): Promise<StepOutcome> {
  const why = entry.firstBoot === true ? await unverifiedBecause(context, observation) : undefined;
  if (why !== undefined) {
    await report(`Waiting for a signature of the image that the node came with: ${why}`);
    return { kind: 'wait', ms: LONGEST_RETRY_MS };
  }
  await runOptionalChecks(context);
  return endVerified(context, entry, observation);
}

/**
 * Checks the signature of the image that a fresh node came with, as that of an image is checked before it is staged,
 * and has the host's tools require signatures from then on. If the node goes to another target, that one is checked
 * when it is staged.
 *
 * @returns why the image is not known to be signed; undefined if it is, or needs no signature of this node.
 */
export async function unverifiedBecause(
  context: StepContext,
  observation: Observation,
): Promise<string | undefined> {
  const { spec, bootedImage } = observation;
  const target = targetOf(spec);
  if (target.mode !== 'Layered' || target.image !== bootedImage) return undefined;
  try {
    await requireSigned(context, observation, target.image);
    return undefined;
  } catch (error) {
    context.signal.throwIfAborted();
    return errorMessage(error);
  }
}

/**
 * The node is healthy: an update has succeeded only if all of its content is on the disk, and nothing else in its
 * place, and the node was booted with its kernel arguments.
 */
async function endVerified(
  context: StepContext,
  entry: JournalEntryAt<'verifying'>,
  observation: Observation,
): Promise<StepOutcome> {
  const { ports, signal } = context;
  const { root } = ports.host;
  const content = await managedContent(root, entry.next);
  // Another image may have another policy: nobody has changed the labels of what came along.
  if (content !== undefined) await restoreLabels(writeTarget(ports), content, signal);
  // What is not there at the end of an update is what it did not bring; from here on, what differs otherwise was
  // changed.
  const drifts = await verifyWithLabels(ports, content, signal);
  const leftOut = leftOutOf(content, drifts, entry.notBrought);
  await writeLeftOut(root, leftOut);
  const drift = nodeDrift({ current: entry.next, content, drifts, leftOut }, observation);
  return drift === undefined
    ? finish(context, entry, observation)
    : endChangedTarget(context, entry, observation, drift);
}

/** Looks again at a node that runs its target and was not healthy, and has nothing to roll back to. */
export async function recheck(
  context: StepContext,
  why: string,
  observation: Observation,
): Promise<StepOutcome> {
  const { client, ports, signal } = context;
  const { healthLimits, nodeName } = context.settings;
  const checks = await runChecks(context, observation.bootID, healthLimits.checksMs);
  const kubelet = await lookAtKubelet(client, nodeName, await bootOf(context, observation), signal);
  const isHealthy = checks.kind === 'passed' && (kubelet.kind === 'ready' || kubelet.kind === 'unwatched');
  const isFirst = observation.lastUpdate?.firstBoot === true;
  const unverified = isHealthy && isFirst ? await unverifiedBecause(context, observation) : undefined;
  if (isHealthy && unverified === undefined && observation.lastUpdate !== undefined) {
    const { message: _why, reason: _reason, ...record } = observation.lastUpdate;
    await writeLastUpdate(ports.host.root, { ...record, result: 'Succeeded' });
    recordEvent(context, 'Healthy', `The health checks pass now; they failed before: ${why}`);
    return again;
  }
  const still = [why, ...(unverified === undefined ? [] : [unverified])].join('; ');
  await publish(context, observation, { kind: 'degraded', why: still, reason: 'HealthCheckFailed' });
  return { kind: 'wait', ms: RECHECK_MS };
}

async function bootOf({ ports: { host } }: StepContext, { bootID }: Observation): Promise<KubeletBoot> {
  return { bootID, softBootSince: await host.softBootSince() };
}

/** @returns the entry of this boot's check, the first of which comes with what the boot finds. */
async function startOrResume(
  context: StepContext,
  entry: JournalEntry,
  bootID: string,
): Promise<JournalEntryAt<'verifying'>> {
  const before = entry.step === 'verifying' ? entry.verifying : undefined;
  if (entry.step === 'verifying' && before?.bootID === bootID) return entry;
  const verifying = { bootID, sinceMs: uptimeMs(), boots: (before?.boots ?? 0) + 1 };
  const notBrought = await bringMissingContent(context, entry);
  return advance(entry, 'verifying', { verifying, ...present({ notBrought }) });
}

/**
 * Writes what the booted image's config has outside of /usr where nothing was written before the boot: on a machine
 * that came with the image, and for a boot that nobody granted. As early as a daemon can, before any health check.
 * Harmless to repeat.
 *
 * @returns why it could not be written; undefined where it was, or needn't be. @throws UndoError, the signal's reason.
 */
async function bringMissingContent(
  { ports, signal }: StepContext,
  { brought, firstBoot, next }: JournalEntry,
): Promise<string | undefined> {
  if (brought === true || next.mode !== 'Layered') return undefined;
  const { root } = ports.host;
  const to = await carriedBy(root);
  if (to === undefined) return undefined;
  // What /etc has otherwise on a machine that ran something else before is somebody's own.
  const scope = firstBoot === true ? {} : ({ scope: 'state' } as const);
  const write = { from: undefined, to, force: true, isBooted: true, ...scope };
  try {
    await writeContent(writeTarget(ports), write, { signal });
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof UndoError) throw error;
    return errorMessage(error);
  }
}

/** Where there is a newer target, the node goes on to that instead of rolling back: one disruption instead of two. */
async function endUnhealthy(
  context: StepContext,
  entry: JournalEntryAt<'verifying'>,
  observation: Observation,
  why: string,
): Promise<StepOutcome> {
  const hasNewerTarget = !isUnaskedStandard(entry) && !isFor(entry.plan, targetOf(observation.spec));
  const hasDeployment =
    deploymentChange(observation.current, observation.bootedImage, entry.next) !== undefined;
  if (hasNewerTarget || !hasDeployment || entry.firstBoot === true || ranBefore(entry, observation))
    return endUnhealthyTarget(context, entry, observation, why);
  await context.journal.write(advance(entry, 'rollingBack', { failedBoot: observation.bootID, why }));
  recordWarning(context, 'HealthCheckFailed', why);
  return again;
}

/** After a reboot that was requested of a node at its target: what would be rolled back to is the same image. */
function ranBefore({ next }: JournalEntry, { current }: Observation): boolean {
  if (next.mode !== 'Layered' || current?.mode !== 'Layered') return false;
  return next.image === current.image && next.config === current.config;
}

/**
 * Its plan names the config of the files. What booted besides, such as kernel arguments, may well be the newer target's
 * own.
 */
function isUnaskedStandard({ withoutGrant, next }: JournalEntry): boolean {
  return withoutGrant === true && next.mode === 'Standard';
}

const passed: Checks = { kind: 'passed' };

/** The first that fails ends the round; once all have passed in a boot they are not run again. */
async function runChecks(
  { memory, ports, signal }: StepContext,
  bootID: string,
  leftMs: number,
): Promise<Checks> {
  if (memory.checkedBoot === bootID) return passed;
  const { required } = await findHealthChecks(ports.host.root);
  const endsAt = performance.now() + leftMs;
  for (const { name, program } of required) {
    const limitMs = Math.max(endsAt - performance.now(), LEAST_CHECK_MS);
    const end = await ports.runCheck(program, { limitMs, signal });
    if (!end.passed) return { kind: 'failed', name, why: end.why };
  }
  memory.checkedBoot = bootID;
  return passed;
}

async function runOptionalChecks(context: StepContext): Promise<void> {
  const { ports, signal } = context;
  const { wanted } = await findHealthChecks(ports.host.root);
  const run = async ({ name, program }: HealthCheck) => {
    const end = await ports.runCheck(program, { limitMs: LEAST_CHECK_MS, signal });
    if (!end.passed) recordWarning(context, 'HealthCheckWarning', `Health check ${name} ${end.why}`);
  };
  for (const check of wanted) await run(check);
}

/** No one sets this clock, and it goes on when the daemon starts again. */
function uptimeMs(): number {
  return uptime() * 1000;
}
