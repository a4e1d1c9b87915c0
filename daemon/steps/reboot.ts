import { setTimeout as delay } from 'node:timers/promises';
import { present } from '../../api/present.ts';
import { emptyNodeConfig } from '../../machineconfig/node-config.ts';
import { armWatchdog } from '../host/boot-watchdog/arm.ts';
import type { NodeDeployment } from '../os/backend.ts';
import { type Current, writeCurrent, writtenConfigOf } from '../records/current.ts';
import { advance, type JournalEntryAt } from '../records/journal.ts';
import { carriedBy, managedContent, standardContent } from '../standard/managed-content.ts';
import { planPasswords, readPasswordFields } from '../standard/passwords.ts';
import { recordStateContent } from '../standard/state-content.ts';
import { type ContentWrite, ForeignChangeError, UndoError, writeContent } from '../standard/write-config.ts';
import { asDeployed } from './as-deployed.ts';
import { waitForLease } from './await-grant.ts';
import { rebootFully, softRebootLeftMs } from './choose-reboot.ts';
import { finalize } from './finalize.ts';
import { daemonLimitMs } from './health.ts';
import { requireOwnContent } from './own-content.ts';
import type { Observation } from './step.ts';
import { again, normal, type StepContext, type StepOutcome, tryPublish, warning } from './step-context.ts';
import { deploymentChange, formatNodeTarget, type Update } from './update.ts';
import { applyConfig, holderOf, newEntry, type UpdateWork, workOf, writeTarget } from './update-context.ts';

/** A machine that was asked to reboot and still runs after this is asked again. */
const REBOOT_DEADLINE_MS = 600_000;

/** Makes the target the next boot and asks for it, while the node's lease is the operator's. */
export async function rebootInto(
  context: StepContext,
  update: Update,
  observation: Observation,
): Promise<StepOutcome> {
  const obstacle = await waitForLease(context, update, holderOf(observation), observation);
  if (obstacle !== undefined) return obstacle;
  const { journal } = context;
  const entry = newEntry(update, observation);
  await journal.write(entry);
  await tryPublish(context, observation, {
    kind: 'applying',
    plan: entry.plan,
    doing: 'Preparing the next boot',
  });
  const resumed = observation.journal !== undefined;
  try {
    const current = await recordDeployed(context, update, observation);
    await makeNextBoot(workOf(context, entry, { ...observation, current }, resumed), entry);
  } catch (error) {
    // Nothing has begun: an update that is over before its first step must not come again by force, nor hold the next one back.
    const isAsBefore = error instanceof ContentNotBrought && !resumed;
    if (error instanceof ForeignChangeError || isAsBefore) await journal.clear();
    throw error;
  }
  await watchNextBoot(context);
  const rebooting = advance(entry, 'rebooting', { brought: true, rebootingSince: new Date().toISOString() });
  await journal.write(rebooting);
  await tryPublish(context, observation, { kind: 'rebooting', plan: entry.plan });
  const how = entry.plan.softReboot === true ? 'Soft-rebooting' : 'Rebooting';
  normal(context, 'Rebooting', `${how} into ${formatNodeTarget(entry.next)}: ${entry.plan.source}`);
  return requestReboot(context, rebooting);
}

/**
 * Records which kernel arguments of its config the node really boots with, before they are put right: what verifies the update
 * then knows that there is a deployment to go back to, and which arguments it had. Where the machine has rebooted since the
 * update began, what booted may be the update's own deployment, and the record is of what ran before.
 */
async function recordDeployed(
  { ports }: StepContext,
  { next }: Update,
  { current, journal, bootID, kernelArguments: { entry, added, unreadable } }: Observation,
): Promise<Current | undefined> {
  const hasRebooted = journal !== undefined && journal.bootID !== bootID;
  if (next.mode !== 'Standard' || hasRebooted) return current;
  const deployed = asDeployed(current, {
    kernelArguments: entry,
    ...present({ addedKernelArguments: added, unreadableArgumentNotes: unreadable }),
  });
  if (deployed !== undefined && deployed !== current) await writeCurrent(ports.host.root, deployed);
  return deployed;
}

/**
 * Where the host's watchdog can't be put the target is rebooted into all the same, as on a host with a read-only /etc; what
 * may pass, such as a full disk, is waited for.
 */
export async function watchNextBoot(context: StepContext): Promise<void> {
  const { ports, signal } = context;
  const limitMs = daemonLimitMs(context.settings.healthLimits);
  if (limitMs === undefined) return;
  try {
    await armWatchdog(ports, { limitMs, signal });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === undefined || !UNWRITABLE.has(code)) throw error;
    warning(
      context,
      'BootUnwatched',
      `The host will not roll back by itself if no daemon starts: ${message}`,
    );
  }
}

const UNWRITABLE: ReadonlySet<string> = new Set(['EROFS', 'EPERM', 'EACCES']);

/** The process is ended by the reboot; one that does not come is asked for again. */
export async function requestReboot(
  context: StepContext,
  entry: JournalEntryAt<'rebooting' | 'rollingBack'>,
  reason = `shale: update to ${formatNodeTarget(entry.next)}`,
): Promise<StepOutcome> {
  const { ports, telemetry, signal } = context;
  await telemetry.tracer.flush();
  let { plan } = entry;
  if (entry.step === 'rebooting' && plan.softReboot === true) {
    const why = await requestSoftReboot(context, entry, reason);
    plan = rebootFully(plan, why);
    warning(context, 'SoftRebootFailed', `Rebooting fully into ${formatNodeTarget(entry.next)}: ${why}`);
  }
  // Before the request: nothing is written after one.
  await context.journal.write({ ...entry, plan, rebootRequests: (entry.rebootRequests ?? 0) + 1 });
  await ports.host.reboot(reason, signal).catch(async (error: unknown) => {
    // Refused, as while somebody holds an inhibitor lock (systemd-inhibit(1)): it is no request in vain, and may be made again.
    if (!signal.aborted) await context.journal.write({ ...entry, plan });
    throw error;
  });
  await delay(REBOOT_DEADLINE_MS, undefined, { signal });
  return again;
}

/** @returns why it did not take place: the process is ended by one that does. */
async function requestSoftReboot(
  { ports: { backend, host }, settings: { softRebootLimitMs }, signal }: StepContext,
  { bootID, rebootingSince }: JournalEntryAt<'rebooting'>,
  reason: string,
): Promise<string> {
  if ((await host.bootID()) !== bootID) return 'the soft reboot did not boot the target';
  const leftMs = softRebootLeftMs(rebootingSince, Date.now(), softRebootLimitMs);
  const late = `the soft reboot did not happen within ${softRebootLimitMs / 1000} s`;
  if (leftMs === 0) return late;
  try {
    await backend.prepareSoftReboot(signal);
    await host.rebootSoftly(reason, signal);
  } catch (error) {
    signal.throwIfAborted();
    return error instanceof Error ? error.message : String(error);
  }
  await delay(leftMs, undefined, { signal });
  return late;
}

/**
 * Makes an update's target the next boot, whole: after this only the reboot itself is missing. Harmless to repeat.
 *
 * In standard mode the config is written to the running root, as MCO does, and a new deployment takes it along by
 * ostree's merge of /etc: all but what is as the booted image has it, which ostree takes from the new image. So the config
 * is written there, too. On the way out of layering it is written into the stock image's deployment alone: the
 * running root stays the layered image's to the end.
 *
 * What an image's config has outside of /usr is brought by the same write: to the new deployment's /etc, where ostree's merge
 * keeps what somebody else has made of a path, and to the state that all deployments share.
 *
 * @param options `scope` for a next boot that nobody has granted yet: what runs stays as it is.
 * @throws ContentNotBrought when the next boot is made and the content can't be written; what there was of it was taken back.
 */
export async function makeNextBoot(
  work: UpdateWork,
  { next }: Pick<Update, 'next'>,
  { scope }: Pick<ContentWrite, 'scope'> = {},
): Promise<void> {
  const { ports, current, signal } = work;
  const { backend, host } = ports;
  const { booted } = await backend.status(signal);
  const change = deploymentChange(current, booted.image, next);
  if (next.mode === 'Standard' && current?.mode !== 'Layered') {
    await applyConfig(work, next).apply();
    if (change === undefined) return;
    const { root } = await finalize(work, change, 'whole /etc');
    const content = standardContent(next);
    await writeInto(work, root, { from: content, to: content });
    return;
  }
  if (change === undefined) return;
  await requireOwnContent(work);
  const staged = await finalize(work, change, 'without what Shale wrote');
  const from = await managedContent(host.root, current);
  if (next.mode === 'Standard') {
    await writeInto(work, staged.root, { from, to: standardContent(next) });
    return;
  }
  const to = await carriedBy(staged.root);
  if (to !== undefined) await bringInto(work, staged.root, { from, to, ...present({ scope }) });
  await takeBackPasswords(work, staged);
}

/** @param root of the staged deployment, whose /var is the host's. */
async function writeInto(
  { ports, signal }: UpdateWork,
  root: string,
  write: Pick<ContentWrite, 'from' | 'to' | 'scope'>,
): Promise<void> {
  const target = { ...writeTarget(ports), root, varRoot: ports.host.root };
  await writeContent(target, { ...write, force: true }, { signal });
  if (write.scope !== 'etc') await recordStateContent(ports.host.root, write.to);
}

async function bringInto(...args: Parameters<typeof writeInto>): Promise<void> {
  const [{ signal }, , { to }] = args;
  try {
    await writeInto(...args);
  } catch (cause) {
    signal.throwIfAborted();
    if (cause instanceof UndoError) throw cause;
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new ContentNotBrought(`${to.config.name} can't be written: ${why}`, { cause });
  }
}

/** An image's content can't be written to the node. Nothing of the running system is other than it was. */
class ContentNotBrought extends Error {
  override readonly name = 'ContentNotBrought';
}

/**
 * A layered image has no passwords (builder/layer/layer-content.ts), and ostree's merge would carry those of standard mode along
 * for ever. One that somebody else has set since is theirs.
 */
async function takeBackPasswords(
  { ports, current, signal }: UpdateWork,
  { root }: NodeDeployment,
): Promise<void> {
  const from = writtenConfigOf(current);
  if (from.passwordHashes.size === 0) return;
  const { changes } = planPasswords({ from, to: emptyNodeConfig }, await readPasswordFields(root));
  const ours = changes.filter(({ user, before }) => from.passwordHashes.get(user) === before);
  await ports.setPasswords(root, new Map(ours.map(({ user, after }) => [user, after])), signal);
}
