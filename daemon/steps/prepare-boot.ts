import { errorMessage } from '../../api/error-message.ts';
import { parseDigestedPullspec } from '../../api/references.ts';
import { emptyNodeConfig } from '../../machineconfig/node-config.ts';
import { untouchedManagedPaths } from '../content/live/managed-etc.ts';
import { carriedBy, managedContent, standardContent } from '../content/managed-content.ts';
import { planPasswords, readPasswordFields } from '../content/passwords.ts';
import { type ContentWrite, UndoError, writeContent } from '../content/write/write-content.ts';
import { installWatchdog } from '../host/boot-watchdog/install.ts';
import { carryCertificates, handedOverTo } from '../host/certificates/owned-paths.ts';
import type { NodeDeployment, OsBackend } from '../os/backend.ts';
import { writtenPolicyFiles } from '../os/image-policy/keep-image-policy.ts';
import { type Current, writtenConfigOf } from '../records/current.ts';
import { mergeManaged, readManagedPaths } from '../records/managed-paths.ts';
import { type DiskWork, writeRunningConfig, writeTarget } from './disk-work.ts';
import { daemonLimitMs } from './health.ts';
import { contentOfConfigs, requireOwnContent } from './own-content.ts';
import { recordWarning, type StepContext } from './step-context.ts';
import { type DeploymentChange, deploymentChange, type Update } from './update.ts';

/**
 * Makes an update's target the next boot, whole: after this only the reboot itself is missing. Harmless to repeat.
 *
 * In standard mode the config is written to the running root, as MCO does, and a new deployment takes it along by
 * ostree's merge of /etc: all but what is as the booted image has it, which ostree takes from the new image. So the
 * config is written there, too. On the way out of layering it is written into the stock image's deployment alone: the
 * running root stays the layered image's to the end.
 *
 * What an image's config has outside of /usr is brought by the same write: to the new deployment's /etc, where ostree's
 * merge keeps what somebody else has made of a path, and to the state that all deployments share.
 *
 * @param options `scope` for a next boot that nobody has granted yet: what runs stays as it is.
 * @throws ContentNotBrought when the next boot is made and the content can't be written; what there was of it was
 *   undone.
 */
export async function makeNextBoot(
  work: DiskWork,
  { next }: Pick<Update, 'next'>,
  { scope }: Pick<ContentWrite, 'scope'> = {},
): Promise<void> {
  const { ports, current, signal } = work;
  const { backend, host } = ports;
  const { booted } = await backend.status(signal);
  const change = deploymentChange(current, booted.image, next);
  if (next.mode === 'Standard' && current?.mode !== 'Layered') {
    await writeRunningConfig(work, next);
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
  if (to !== undefined) await bringInto(work, staged.root, { from, to, scope });
  await removePasswords(work, staged);
}

/**
 * Makes a staged deployment the next boot, with the /etc that it has to have: the same deployment as was staged before,
 * unless it was undone meanwhile.
 *
 * @param merge what ostree's merge takes along of the running /etc.
 * @returns the deployment, which the next boot takes, also after a loss of power.
 */
export async function finalize(
  work: DiskWork,
  { image, ...extra }: DeploymentChange,
  merge: 'whole /etc' | 'without what Shale wrote',
): Promise<NodeDeployment> {
  const { ports, signal } = work;
  const { backend, host, relabel } = ports;
  const { root } = await backend.stage(image, { ...extra, evenIfBooted: true, signal });
  const managed =
    merge === 'whole /etc'
      ? new Map<string, string>()
      : await untouchedManagedPaths(
          host.root,
          mergeManaged(
            await handedOverTo(host.root, root),
            await writtenPolicyFiles(host.root),
            await contentOfConfigs({ ...work, root: host.root }, await carriedBy(root)),
            await readManagedPaths(host.root),
          ),
        );
  const staged = await backend.finalizeStaged(managed, signal);
  const carried = await carryCertificates(host.root, staged.root);
  await relabel(staged.root, [...managed.keys(), ...carried], signal);
  return staged;
}

/** @param root of the staged deployment, whose /var is the host's. */
async function writeInto(
  { ports, signal }: DiskWork,
  root: string,
  write: Pick<ContentWrite, 'from' | 'to' | 'scope'>,
): Promise<void> {
  const target = { ...writeTarget(ports), root, varRoot: ports.host.root };
  await writeContent(target, { ...write, force: true }, { signal });
}

async function bringInto(...args: Parameters<typeof writeInto>): Promise<void> {
  const [{ signal }, , { to }] = args;
  try {
    await writeInto(...args);
  } catch (cause) {
    signal.throwIfAborted();
    if (cause instanceof UndoError) throw cause;
    const why = errorMessage(cause);
    throw new ContentNotBrought(`${to.config.name} can't be written: ${why}`, { cause });
  }
}

/** An image's content can't be written to the node. Nothing of the running system is other than it was. */
export class ContentNotBrought extends Error {
  override readonly name = 'ContentNotBrought';
}

/**
 * A layered image has no passwords (builder/layer/layer-content.ts), and ostree's merge would carry those of standard
 * mode along for ever. One that somebody else has set since is theirs.
 */
async function removePasswords(
  { ports, current, signal }: DiskWork,
  { root }: NodeDeployment,
): Promise<void> {
  const from = writtenConfigOf(current);
  if (from.passwordHashes.size === 0) return;
  const { changes } = planPasswords({ from, to: emptyNodeConfig }, await readPasswordFields(root));
  const ours = changes.filter(({ user, before }) => from.passwordHashes.get(user) === before);
  await ports.setPasswords(root, new Map(ours.map(({ user, after }) => [user, after])), signal);
}

/**
 * Where the host's watchdog can't be put the target is rebooted into all the same, as on a host with a read-only /etc;
 * what may pass, such as a full disk, is waited for.
 */
export async function guardNextBoot(context: StepContext): Promise<void> {
  const { ports, signal } = context;
  const limitMs = daemonLimitMs(context.settings.healthLimits);
  if (limitMs === undefined) return;
  try {
    await installWatchdog(ports, { limitMs, signal });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === undefined || !UNWRITABLE.has(code)) throw error;
    recordWarning(
      context,
      'BootUnwatched',
      `The host will not roll back by itself if no daemon starts: ${message}`,
    );
  }
}

const UNWRITABLE: ReadonlySet<string> = new Set(['EROFS', 'EPERM', 'EACCES']);

/**
 * Ensures that an unplanned reboot brings back what the node runs: a target that was staged and is no longer wanted, or
 * not granted yet, is unstaged, and an image that was applied live is staged.
 *
 * @throws what the image tool throws.
 */
export async function settleNextBoot(
  backend: OsBackend,
  current: Current | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { booted, staged } = await backend.status(signal);
  const running = current?.mode === 'Layered' ? current.image : booted.image;
  const nextBoot = staged ?? booted;
  if (nextBoot.image === running) {
    // Standard mode runs the booted deployment; another of the same image has other kernel arguments.
    if (staged !== undefined && current?.mode !== 'Layered') await backend.unstage(signal);
    return;
  }
  if (booted.image === running || running === undefined) return backend.unstage(signal);
  const extraKernelArguments = { remove: [], add: [] };
  await backend.stage(parseDigestedPullspec(running), { extraKernelArguments, signal });
}
