import { kernelBootID } from '../../../api/boot-id.ts';
import { HostTree } from '../../files/host-tree.ts';
import { imageEtcIn, inImageEtc } from '../../files/image-tree.ts';
import { putFile, putLink, removeFile } from '../../files/put-file.ts';
import { takeSteps } from '../../files/write-step.ts';
import { readManagedPaths } from '../../records/managed-paths.ts';
import type { NodePorts } from '../host.ts';
import { readMark, removeMark, WATCHDOG_UNIT, watchdogPaths } from './watchdog-files.ts';
import { watchdogFiles } from './watchdog-script.ts';

/**
 * Puts the watchdog into the deployment that is the next boot, and nowhere else: what runs now stays as it is, because
 * it may be rolled back to. Harmless to repeat.
 *
 * @param limitMs how long after boot a daemon has to be there.
 * @returns whether there is another deployment to be watched over.
 */
export async function installWatchdog(
  { host, backend, relabel }: Pick<NodePorts, 'host' | 'backend' | 'relabel'>,
  { limitMs, signal }: { readonly limitMs: number; readonly signal: AbortSignal },
): Promise<boolean> {
  const { staged } = await backend.status(signal);
  if (staged === undefined) return false;
  await removeMark(host.root);
  // A soft reboot leaves /run as it is.
  for (const name of [watchdogPaths.alive, watchdogPaths.since]) await removeFile(host.root, name);
  const { link, script, unit, wants } = watchdogPaths;
  const keep = [...(await readManagedPaths(host.root)).keys(), link, unit, script];
  const files = watchdogFiles({
    deployment: staged.id,
    limitSeconds: Math.ceil(limitMs / 1000),
    rollbackScript: await backend.rollbackScript(keep, signal),
    bootScript: await backend.bootScript(signal),
  });
  for (const [name, text] of files) {
    await putFile(staged.root, name, { contents: Buffer.from(text), mode: 0o644 });
  }
  await putLink(staged.root, link, unit);
  await relabel(staged.root, [wants, ...files.keys(), link], signal);
  return true;
}

/**
 * Removes the watchdog from a tree, which may be another deployment's that inherited /etc. The unit that starts it is
 * removed first. Does nothing where it is not installed.
 *
 * @param root of the tree.
 */
export async function removeWatchdog(root: string): Promise<void> {
  const { link, unit, script, wants } = watchdogPaths;
  for (const name of [link, unit, script]) await removeFile(root, name);
  await using tree = new HostTree({ root });
  const location = await tree.locate(wants);
  const images = await tree.locate(inImageEtc(await imageEtcIn(root), wants));
  if ((await tree.stat(location.name)) === undefined || (await tree.stat(images.name)) !== undefined) return;
  await takeSteps({ root }, [{ kind: 'remove directory', name: location.name, evenIfNotEmpty: 'leave' }]);
}

/** After an update: removes its watchdog and the record of what it did. @param root the running root. */
export async function retireWatchdog(root: string): Promise<void> {
  await removeWatchdog(root);
  await removeMark(root);
}

/** Whether the watchdog is in a tree. @param root of the tree. */
export async function hasWatchdog(root: string): Promise<boolean> {
  await using tree = new HostTree({ root });
  const { name } = await tree.locate(watchdogPaths.unit);
  return (await tree.stat(name)) !== undefined;
}

/**
 * Takes over from the watchdog of this boot: from now on the daemon rolls back. One that has started already, and
 * not yet rebooted, is stopped: two that change the boot order at once may change it back.
 */
export async function takeOverFromWatchdog(
  { host, services }: Pick<NodePorts, 'host' | 'services'>,
  signal: AbortSignal,
): Promise<void> {
  if (!(await hasWatchdog(host.root))) return;
  await putFile(host.root, watchdogPaths.alive, { contents: Buffer.of(), mode: 0o644 });
  const mark = await readMark(host.root);
  if (mark?.bootID === kernelBootID(await host.bootID())) await services.stop(WATCHDOG_UNIT, signal);
}
