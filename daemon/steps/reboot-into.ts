import { emptyNodeConfig } from '../../machineconfig/empty-config.ts';
import { carryCertificates, handedOverTo } from '../host/certificates/beside-images.ts';
import type { Deployment } from '../os/backend.ts';
import { readManagedPaths, untouchedManagedPaths } from '../records/managed-paths.ts';
import { nodeConfigOf, writtenConfigOf } from '../records/rendered-config.ts';
import { planPasswords, readPasswordFields } from '../standard/passwords.ts';
import { writeConfig } from '../standard/write-config.ts';
import { applyConfig, writeTarget } from './apply-config.ts';
import { type DeploymentChange, deploymentChange } from './deployment-change.ts';
import type { Update } from './update.ts';
import type { UpdateContext } from './update-context.ts';

/**
 * Makes an update's target the next boot, whole: after this only the reboot itself is missing. Harmless to repeat.
 *
 * In standard mode the config is written to the running root, as MCO does, and a new deployment takes it along by
 * ostree's merge of /etc. On the way out of layering it is written into the stock image's deployment instead: the
 * running root stays the layered image's to the end.
 */
export async function makeNextBoot(context: UpdateContext, { next }: Pick<Update, 'next'>): Promise<void> {
  const { ports, current, signal } = context;
  const { backend, host } = ports;
  const { booted } = await backend.status(signal);
  const change = deploymentChange(current, booted.image, next);
  if (next.mode === 'Standard' && current?.mode !== 'Layered') {
    await applyConfig(context, next).apply();
    if (change !== undefined) await finalize(context, change, 'whole /etc');
    return;
  }
  if (change === undefined) return;
  const staged = await finalize(context, change, 'without what Shale wrote');
  if (next.mode === 'Layered') {
    await takeBackPasswords(context, staged);
    return;
  }
  await writeConfig(
    { ...writeTarget(ports), root: staged.root, varRoot: host.root },
    { from: emptyNodeConfig, to: nodeConfigOf(next.rendered), force: true },
    { signal },
  );
}

/**
 * A layered image has no passwords (builder/layer-content.ts), and ostree's merge would carry those of standard mode along
 * for ever. One that somebody else has set since is theirs.
 */
async function takeBackPasswords(
  { ports, current, signal }: UpdateContext,
  { root }: Deployment,
): Promise<void> {
  const from = writtenConfigOf(current);
  if (from.passwordHashes.size === 0) return;
  const { changes } = planPasswords({ from, to: emptyNodeConfig }, await readPasswordFields(root));
  const ours = changes.filter(({ user, before }) => from.passwordHashes.get(user) === before);
  await ports.setPasswords(root, new Map(ours.map(({ user, after }) => [user, after])), signal);
}

/**
 * Staged before; the same deployment again, unless it was undone meanwhile.
 *
 * @param merge what ostree's merge takes along of the running /etc.
 */
async function finalize(
  { ports: { backend, host, relabel }, signal }: UpdateContext,
  { image, ...extra }: DeploymentChange,
  merge: 'whole /etc' | 'without what Shale wrote',
): Promise<Deployment> {
  const { root } = await backend.stage(image, { ...extra, evenIfBooted: true, signal });
  const managed =
    merge === 'whole /etc'
      ? new Map<string, string>()
      : await untouchedManagedPaths(
          host.root,
          new Map([...(await handedOverTo(host.root, root)), ...(await readManagedPaths(host.root))]),
        );
  const staged = await backend.finalizeStaged(managed, signal);
  await relabel(staged.root, [...managed.keys()], signal);
  await carryCertificates(host.root, staged.root);
  return staged;
}
