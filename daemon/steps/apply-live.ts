import { type DigestedPullspec, parseDigestedPullspec } from '../../api/references.ts';
import { handedOverTo } from '../host/certificates/beside-images.ts';
import { applyLive, verifyLive } from '../tree-sync/live-apply.ts';
import { actOnServices } from './act-on-services.ts';
import { applyConfig } from './apply-config.ts';
import type { Update } from './update.ts';
import { type LiveWay, NotAsWanted, orOnlyByReboot, type UpdateContext } from './update-context.ts';

/**
 * Brings the running system to an update's target: content first, then the services' actions in order, then a look
 * whether all of it is there. Harmless to repeat.
 *
 * @throws LiveUpdateFailed when only a reboot can bring it about now; anything else when the system is as it was before.
 */
export async function updateLive(context: UpdateContext, { next, plan }: Update): Promise<void> {
  const { ports, signal } = context;
  const way =
    next.mode === 'Layered'
      ? await applyImage(context, parseDigestedPullspec(next.image))
      : applyConfig(context, next);
  await way.apply();
  await orOnlyByReboot(signal, async () => {
    await actOnServices({
      services: ports.services,
      actions: plan.actions,
      limits: context.actionLimits,
      before: context.beforeAction,
      signal,
    });
    const differing = await way.differing();
    if (differing.length > 0) throw new NotAsWanted(differing);
  });
}

/** The content is the image's own, from its staged deployment. */
async function applyImage({ ports, signal }: UpdateContext, image: DigestedPullspec): Promise<LiveWay> {
  const { host, services, backend, relabel } = ports;
  // Staged before; the same deployment again, unless it was undone meanwhile. It may be the booted one.
  const staged = await backend.stage(image, { extraKernelArguments: { remove: [], add: [] }, signal });
  const { booted } = await backend.status(signal);
  return {
    apply: () =>
      orOnlyByReboot(signal, async () => {
        await host.unlockUsr(signal);
        const handedOver = await handedOverTo(host.root, staged.root);
        await applyLive({ host, services, relabel, booted, staged, handedOver, signal });
      }),
    differing: () => verifyLive({ host, booted, staged, signal }),
  };
}
