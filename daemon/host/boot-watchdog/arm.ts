import { lstat, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { readManagedPaths } from '../../records/managed-paths.ts';
import { resolveInRoot } from '../../tree/resolve-in-root.ts';
import { ignoreMissing } from '../../tree/tree-entry.ts';
import { syncDirectory, writeDurably } from '../../tree/write-step.ts';
import type { NodePorts } from '../host.ts';
import { kernelBootID } from '../userspace-boot.ts';
import { readMark, removeMark } from './mark.ts';
import { WATCHDOG_UNIT, watchdogFiles, watchdogPaths } from './watchdog-files.ts';

/**
 * Puts the watchdog into the deployment that is the next boot, and nowhere else: what runs now stays as it is, for it may
 * be gone back to. Harmless to repeat.
 *
 * @param limitMs how long after boot a daemon has to be there.
 * @returns whether there is another deployment to be watched over.
 */
export async function armWatchdog(
  { host, backend, relabel }: Pick<NodePorts, 'host' | 'backend' | 'relabel'>,
  { limitMs, signal }: { readonly limitMs: number; readonly signal: AbortSignal },
): Promise<boolean> {
  const { staged } = await backend.status(signal);
  if (staged === undefined) return false;
  await removeMark(host.root);
  // A soft reboot leaves /run as it is.
  for (const name of [watchdogPaths.alive, watchdogPaths.since]) {
    await rm(path.join(host.root, name), { force: true });
  }
  const { link, script, unit, wants } = watchdogPaths;
  const keep = [...(await readManagedPaths(host.root)).keys(), link, unit, script];
  const files = watchdogFiles({
    deployment: staged.id,
    limitSeconds: Math.ceil(limitMs / 1000),
    rollbackScript: await backend.rollbackScript(keep, signal),
  });
  await makeDirectories(staged.root);
  for (const [name, text] of files) {
    const contents = Buffer.from(text);
    const place = await placeOf(staged.root, name);
    await writeDurably({ kind: 'file', name, place, contents, mode: 0o644, uid: 0, gid: 0 });
  }
  const place = await placeOf(staged.root, link);
  await writeDurably({ kind: 'symlink', name: link, place, target: unit, uid: 0, gid: 0 });
  await syncDirectory(path.dirname(place));
  await relabel(staged.root, [wants, ...files.keys(), link], signal);
  return true;
}

/**
 * Takes the watchdog out of a tree, wherever it came from: an /etc may have been carried on to another deployment. What
 * starts it goes first. None there: nothing done.
 *
 * @param root of the tree.
 */
export async function disarmWatchdog(root: string): Promise<void> {
  const { link, unit, script, wants } = watchdogPaths;
  for (const name of [link, unit, script]) {
    const place = await resolveInRoot(root, name);
    if (place === undefined || (await lstat(place).catch(ignoreMissing)) === undefined) continue;
    await writeDurably({ kind: 'remove', name, place });
    await syncDirectory(path.dirname(place));
  }
  const place = await resolveInRoot(root, wants);
  if (place === undefined || (await readdir(place).catch(ignoreMissing))?.length !== 0) return;
  const isImages = await lstat(path.join(root, 'usr', wants)).catch(ignoreMissing);
  if (isImages === undefined) {
    await writeDurably({ kind: 'remove directory', name: wants, place, evenIfNotEmpty: 'leave' });
  }
}

/** The update is over: nothing is left of its watchdog, nor of what it did. @param root the running root. */
export async function endWatch(root: string): Promise<void> {
  await disarmWatchdog(root);
  await removeMark(root);
}

/** Whether the watchdog is in a tree. @param root of the tree. */
export async function isArmed(root: string): Promise<boolean> {
  const place = await resolveInRoot(root, watchdogPaths.unit);
  return place !== undefined && (await lstat(place).catch(ignoreMissing)) !== undefined;
}

/**
 * Takes over from the watchdog of this boot: from now on the daemon rolls back. One that has started already, and
 * not yet rebooted, is stopped: two that change the boot order at once may change it back.
 */
export async function takeOverWatch(
  { host, services }: Pick<NodePorts, 'host' | 'services'>,
  signal: AbortSignal,
): Promise<void> {
  if (!(await isArmed(host.root))) return;
  const alive = path.join(host.root, watchdogPaths.alive);
  await mkdir(path.dirname(alive), { recursive: true });
  await writeFile(alive, '');
  const mark = await readMark(host.root);
  if (mark?.bootID === kernelBootID(await host.bootID())) await services.stop(WATCHDOG_UNIT, signal);
}

async function makeDirectories(root: string): Promise<void> {
  const { wants } = watchdogPaths;
  const parts = wants.split('/').slice(1);
  for (const name of parts.map((_, index) => `/${parts.slice(0, index + 1).join('/')}`)) {
    const place = await placeOf(root, name);
    if ((await lstat(place).catch(ignoreMissing)) !== undefined) continue;
    await writeDurably({ kind: 'directory', name, place, mode: 0o755, uid: 0, gid: 0 });
  }
}

async function placeOf(root: string, name: string): Promise<string> {
  const place = await resolveInRoot(root, name);
  if (place === undefined) throw new Error(`${path.join(root, name)}: its directory is missing`);
  return place;
}
