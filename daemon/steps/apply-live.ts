import type { DisruptionAction } from '../../api/disruption-action.ts';
import { writesAtOnce } from '../../disruption/opt-in.ts';
import { reloadsSshd, sshdCauses } from '../../disruption/sshd-reload.ts';
import { withdrawnUnits } from '../../disruption/withdrawn-units.ts';
import { emptyNodeConfig, type NodeConfig } from '../../machineconfig/node-config.ts';
import { handedOverTo } from '../host/certificates/owned-paths.ts';
import type { Current } from '../records/current.ts';
import type { JournalEntryAt } from '../records/journal.ts';
import { mergeManaged } from '../records/managed-paths.ts';
import { carriedBy, managedContent, verifyContent, withKnownOwner } from '../standard/managed-content.ts';
import { recordStateContent } from '../standard/state-content.ts';
import { checkContent, UndoError, writeContent } from '../standard/write-config.ts';
import { applyLive, verifyLive } from '../tree-sync/live-apply.ts';
import { actOnServices } from './act-on-services.ts';
import { waitForLease } from './await-grant.ts';
import { finish } from './end-update.ts';
import { finalize } from './finalize.ts';
import { contentOfConfigs, requireOwnContent } from './own-content.ts';
import { applySpans } from './spans.ts';
import type { Observation } from './step.ts';
import { again, type StepContext, type StepOutcome, tryPublish, warning } from './step-context.ts';
import { byReboot, imageChange, type Update } from './update.ts';
import type { LiveWay } from './update-context.ts';
import { applyConfig, holderOf, newEntry, type UpdateWork, workOf, writeTarget } from './update-context.ts';

/** Begins an update that needs no reboot, while the node's lease is the operator's. */
export async function startLiveApply(
  context: StepContext,
  update: Update,
  observation: Observation,
): Promise<StepOutcome> {
  const obstacle = await waitForLease(context, update, holderOf(observation), observation);
  if (obstacle !== undefined) return obstacle;
  const entry = newEntry(update, observation);
  await context.journal.write(entry);
  return applyLiveUpdate(context, entry, observation, false);
}

/**
 * Applies what the journal says to the running system.
 *
 * @param isAgain the update was begun before; how far it came is not known.
 */
export async function applyLiveUpdate(
  context: StepContext,
  entry: JournalEntryAt<'applying'>,
  observation: Observation,
  isAgain: boolean,
): Promise<StepOutcome> {
  const { journal } = context;
  await tryPublish(context, observation, { kind: 'applying', plan: entry.plan, doing: 'Writing files' });
  const spans = applySpans(context, entry);
  const work = workOf(context, entry, observation, isAgain);
  const { beforeAction } = work;
  try {
    await updateLive(
      {
        ...work,
        beforeAction: (action) => {
          spans.begin(action);
          return beforeAction(action);
        },
      },
      entry,
    );
    spans.end();
  } catch (error) {
    if (!context.signal.aborted) spans.end(error instanceof Error ? error.name : 'Error');
    if (error instanceof LiveUpdateFailed) {
      const written = entry.next.mode === 'Standard' ? { written: true } : {};
      const rebooting = byReboot(entry, error.message);
      await journal.write({ ...rebooting, ...written });
      const { config, source } = rebooting.plan;
      warning(context, 'LiveApplyFailed', `${config} ${source}; it needs a reboot`);
      return again;
    }
    // Nothing was changed, or all of it was taken back: the update has not begun.
    const isAsBefore = !context.signal.aborted && !(error instanceof UndoError);
    if (!isAgain && isAsBefore) await journal.clear();
    throw error;
  }
  return finish(context, entry, observation);
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
    const shown = paths.slice(0, 5).join(', ');
    const more = paths.length > 5 ? ` and ${paths.length - 5} more` : '';
    super(`differs from the target after the update: ${shown}${more}`);
  }
}

/**
 * Does what changes the running system.
 *
 * @throws LiveUpdateFailed for whatever goes wrong; the signal's reason when the daemon was told to end.
 */
async function orRequireReboot(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (cause) {
    signal.throwIfAborted();
    throw new LiveUpdateFailed(cause instanceof Error ? cause.message : String(cause), { cause });
  }
}

/**
 * Brings the running system to an update's target: content first, then the services' actions in order, then a look
 * whether all of it is there. Harmless to repeat.
 *
 * @throws LiveUpdateFailed when only a reboot can bring it about now; anything else when the system is as it was before.
 */
async function updateLive(work: UpdateWork, { next, plan }: Update): Promise<void> {
  const { ports, signal } = work;
  const way = next.mode === 'Layered' ? await applyImage(work, next) : applyConfig(work, next);
  const { from, to } = await way.configs();
  await way.apply();
  await orRequireReboot(signal, async () => {
    await actOnServices({
      services: ports.services,
      actions: next.mode === 'Layered' ? withSshd(plan.actions, work.current, { from, to }) : plan.actions,
      withdrawn: new Set(withdrawnUnits(from, to).keys()),
      limits: work.actionLimits,
      before: work.beforeAction,
      signal,
    });
    const differing = await way.differing();
    if (differing.length > 0) throw new TargetMismatch(differing);
    await way.makeNextBoot();
  });
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
async function applyImage(work: UpdateWork, next: Extract<Current, { mode: 'Layered' }>): Promise<LiveWay> {
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
        if (write === undefined) return;
        await writeContent(target, write, { signal });
        await recordStateContent(host.root, write.to);
      });
    },
    differing: async () => {
      const drifts = withKnownOwner(await verifyContent(host.root, coming, signal));
      const live = await verifyLive({ host, booted, staged, signal });
      const paths = [...live, ...drifts.map((drift) => drift.path)];
      return [...new Set(paths)].sort();
    },
    makeNextBoot: async () => {
      // The image's /etc was merged when it was staged: what Shale had written by then would shadow the image's version.
      const isMerged = writesAtOnce((await backend.tool(signal)).name);
      if (isMerged && staged.id !== booted.id) await finalize(work, change, 'without what Shale wrote');
    },
  };
}
