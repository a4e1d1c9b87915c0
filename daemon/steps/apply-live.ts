import { type DisruptionAction, formatAction } from '../../api/disruption-action.ts';
import { asError, errorMessage } from '../../api/error-message.ts';
import { shortList } from '../../api/plural.ts';
import { writesAtOnce } from '../../disruption/opt-in.ts';
import { reloadsSshd, sshdCauses } from '../../disruption/sshd-reload.ts';
import { withdrawnUnits } from '../../disruption/withdrawn-units.ts';
import { emptyNodeConfig, type NodeConfig } from '../../machineconfig/node-config.ts';
import { verifyContent } from '../content/drift/verify-content.ts';
import { applyLive, verifyLive } from '../content/live/live-apply.ts';
import { carriedBy, managedContent, standardContent, withKnownOwner } from '../content/managed-content.ts';
import { checkContent, UndoError, writeContent } from '../content/write/write-content.ts';
import { handedOverTo } from '../host/certificates/owned-paths.ts';
import {
  type Current,
  type LayeredCurrent,
  type StandardCurrent,
  writtenConfigOf,
} from '../records/current.ts';
import { begin, type JournalEntryAt, leftOnDisk } from '../records/journal.ts';
import { mergeManaged } from '../records/managed-paths.ts';
import { actOnServices, type ServiceActions } from './act-on-services.ts';
import { holderOf, waitForLease } from './await-grant.ts';
import { type DiskWork, newWork, resumedWork, writeRunningConfig, writeTarget } from './disk-work.ts';
import { finish } from './end-update.ts';
import { contentOfConfigs, requireOwnContent } from './own-content.ts';
import { finalize } from './prepare-boot.ts';
import { applySpans } from './spans.ts';
import type { Observation } from './step.ts';
import { again, recordWarning, type StepContext, type StepOutcome, tryPublish } from './step-context.ts';
import { byReboot, imageChange, type Update } from './update.ts';

/** Begins an update that needs no reboot, while the node's lease is the operator's. */
export async function startLive(
  context: StepContext,
  update: Update,
  observation: Observation,
): Promise<StepOutcome> {
  const holder = holderOf(observation);
  const obstacle = await waitForLease(context, update, holder, observation);
  if (obstacle !== undefined) return obstacle;
  const left = leftOnDisk(observation.journal, update);
  const entry = begin('applying', update, { bootID: observation.bootID, leaseHolder: holder, ...left });
  await context.journal.write(entry);
  return applyEntry(context, entry, { work: newWork(context, entry, observation), observation });
}

/** Applies an update that was begun before. How far it came is not known. */
export async function resumeLive(
  context: StepContext,
  entry: JournalEntryAt<'applying'>,
  observation: Observation,
): Promise<StepOutcome> {
  return applyEntry(context, entry, { work: resumedWork(context, entry, observation), observation });
}

/** Applies what the journal says to the running system. */
async function applyEntry(
  context: StepContext,
  entry: JournalEntryAt<'applying'>,
  { work, observation }: { readonly work: DiskWork; readonly observation: Observation },
): Promise<StepOutcome> {
  const { plan } = entry;
  const report = (doing: string) => tryPublish(context, observation, { kind: 'applying', plan, doing });
  await report('Writing files');
  const spans = applySpans(context, entry);
  const beforeAction = (action: DisruptionAction) => {
    spans.begin(action);
    return report(`Running ${formatAction(action)}`);
  };
  try {
    await updateLive(work, entry, { limits: context.settings.actionLimits, before: beforeAction });
    spans.end();
  } catch (error) {
    const isEnding = context.signal.aborted;
    if (!isEnding) spans.end(asError(error).name);
    if (error instanceof LiveUpdateFailed) return goOnByReboot(context, entry, error);
    // Nothing was changed, or all of it was undone: the update has not begun.
    const isAsBefore = work.disk === 'AsRecorded' && !isEnding && !(error instanceof UndoError);
    if (isAsBefore) await context.journal.clear();
    throw error;
  }
  return finish(context, entry, observation);
}

async function goOnByReboot(
  context: StepContext,
  entry: JournalEntryAt<'applying'>,
  { message }: LiveUpdateFailed,
): Promise<StepOutcome> {
  const { plan } = byReboot(entry, message);
  const isWritten = entry.next.mode === 'Standard';
  await context.journal.write({ ...entry, plan, ...(isWritten ? { written: true } : {}) });
  recordWarning(context, 'LiveApplyFailed', `${plan.config} ${plan.source}; it needs a reboot`);
  return again;
}

/** The running system was changed, and only a reboot can bring it to the target. */
class LiveUpdateFailed extends Error {
  override readonly name = 'LiveUpdateFailed';
}

/** Something differs from what the update was to bring about. */
export class TargetMismatch extends Error {
  override readonly name = 'TargetMismatch';

  /** @param paths what differs, at least one. */
  constructor(paths: readonly string[]) {
    super(`differs from the target after the update: ${shortList(paths, 5)}`);
  }
}

/**
 * Does what changes the running system.
 *
 * @throws LiveUpdateFailed for whatever goes wrong; the signal's reason when the daemon is terminated.
 */
async function orRequireReboot(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (cause) {
    signal.throwIfAborted();
    throw new LiveUpdateFailed(errorMessage(cause), { cause });
  }
}

/**
 * Brings the running system to an update's target: content first, then the services' actions in order, then a check
 * that all of it is there. Harmless to repeat.
 *
 * @throws LiveUpdateFailed when only a reboot can bring it about now; anything else when the system is as it was
 *   before.
 */
async function updateLive(
  work: DiskWork,
  { next, plan }: Update,
  actions: Pick<ServiceActions, 'limits' | 'before'>,
): Promise<void> {
  const { ports, signal } = work;
  const content = next.mode === 'Layered' ? await liveImage(work, next) : liveConfig(work, next);
  const { from, to } = await content.configs();
  await content.apply();
  await orRequireReboot(signal, async () => {
    await actOnServices({
      services: ports.services,
      actions: next.mode === 'Layered' ? withSshd(plan.actions, work.current, { from, to }) : plan.actions,
      withdrawn: new Set(withdrawnUnits(from, to).keys()),
      ...actions,
      signal,
    });
    const differing = await content.differing();
    if (differing.length > 0) throw new TargetMismatch(differing);
    await content.settleNextBoot();
  });
}

/** How one mode brings content to the running root. */
interface LiveContent {
  /** The configs of the disk and of the target; asked for before the disk is changed. */
  configs(): Promise<{ readonly from: NodeConfig; readonly to: NodeConfig }>;
  apply(): Promise<void>;
  /** @returns the paths that are not as desired. */
  differing(): Promise<readonly string[]>;
  /** Ensures that the next boot has the content, too. Called once nothing differs. */
  settleNextBoot(): Promise<void>;
}

/** The content is the rendered config's, written to the running root. */
function liveConfig(work: DiskWork, next: StandardCurrent): LiveContent {
  const { root } = work.ports.host;
  const content = standardContent(next);
  return {
    configs: async () => ({ from: writtenConfigOf(work.current), to: content.config }),
    apply: () => writeRunningConfig(work, next),
    differing: async () => {
      const drifts = await verifyContent({ root }, content, work.signal);
      return drifts.map(({ path }) => path);
    },
    // The booted deployment is the next boot.
    settleNextBoot: async () => undefined,
  };
}

/** The label of an image that an older version of Shale built doesn't name the reload of sshd. */
function withSshd(
  actions: readonly DisruptionAction[],
  current: Current | undefined,
  { from, to }: { readonly from: NodeConfig; readonly to: NodeConfig },
): readonly DisruptionAction[] {
  if (reloadsSshd(actions)) return actions;
  const causes = sshdCauses(current?.mode === 'Layered' ? from : emptyNodeConfig, to);
  return [...actions, ...causes.flatMap((cause) => cause.actions)];
}

/** The content is the image's own, from its staged deployment. */
async function liveImage(work: DiskWork, next: LayeredCurrent): Promise<LiveContent> {
  const { ports, current, signal } = work;
  const { host, backend, relabel } = ports;
  const change = imageChange(current, next);
  const { image, ...extra } = change;
  // Staged before; the same deployment again, unless it was undone meanwhile. It may be the booted one.
  const staged = await backend.stage(image, { ...extra, signal });
  const { booted } = await backend.status(signal);
  const target = { ...writeTarget(ports), imageRoot: staged.root };
  const coming = await carriedBy(staged.root);
  return {
    configs: async () => ({
      from: (await managedContent(host.root, work.current))?.config ?? emptyNodeConfig,
      to: coming?.config ?? emptyNodeConfig,
    }),
    apply: async () => {
      await requireOwnContent(work);
      // The running /usr is another one afterwards.
      const from = await managedContent(host.root, work.current);
      const write = coming && { from, to: coming, force: true };
      // What could not be written is found while the system is as it was.
      if (write !== undefined) await checkContent(target, write, signal);
      await orRequireReboot(signal, async () => {
        await host.unlockUsr(signal);
        const handedOver = mergeManaged(
          await handedOverTo(host.root, staged.root),
          await contentOfConfigs({ ...work, root: host.root }, coming),
        );
        await applyLive({ host, relabel, booted, staged, handedOver, signal });
        if (write !== undefined) await writeContent(target, write, { signal });
      });
    },
    differing: async () => {
      const drifts = withKnownOwner(await verifyContent({ root: host.root }, coming, signal));
      const live = await verifyLive({ host, booted, staged, signal });
      const paths = [...live, ...drifts.map((drift) => drift.path)];
      return [...new Set(paths)].sort();
    },
    settleNextBoot: async () => {
      // The image's /etc was merged when it was staged: what Shale had written by then would shadow the image's
      // version.
      const isMerged = writesAtOnce((await backend.tool(signal)).name);
      if (isMerged && staged.id !== booted.id) await finalize(work, change, 'without what Shale wrote');
    },
  };
}
