import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import path from 'node:path';

/**
 * All that decides what `ostree admin status` prints of a node, by content: a time of change can be the same after two
 * changes. What is booted; the deployments, their bootloader entries, whose versions are the boot order, and the links
 * that lead to them; what is staged; the origins, which note pins.
 *
 * Read at once, without giving way to the daemon of the same process.
 *
 * @param dir of the node. @returns text that is equal where status prints the same.
 */
export function statusInputs(dir: string): string {
  const sysroot = path.join(dir, 'root/sysroot');
  const entries = path.join(sysroot, 'boot/loader/entries');
  const stateroots = path.join(sysroot, 'ostree/deploy');
  const deployments = namesIn(stateroots).map((name) => path.join(stateroots, name, 'deploy'));
  const bootLinks = namesIn(path.join(sysroot, 'ostree')).filter((name) => name.startsWith('boot.'));
  return JSON.stringify([
    textOf(path.join(dir, 'machine.json')),
    textOf(path.join(dir, 'root/run/ostree/staged-deployment')),
    linkOf(path.join(sysroot, 'boot/loader')),
    textsIn(entries, namesIn(entries)),
    bootLinks.map((name) => [name, linkOf(path.join(sysroot, 'ostree', name))]),
    deployments.map((directory) => {
      const names = namesIn(directory);
      const origins = names.filter((name) => name.endsWith('.origin'));
      return [directory, names, textsIn(directory, origins)];
    }),
  ]);
}

function textsIn(directory: string, names: readonly string[]): readonly unknown[] {
  return names.map((name) => [name, textOf(path.join(directory, name))]);
}

function namesIn(directory: string): readonly string[] {
  return orMissing(() => readdirSync(directory).sort()) ?? [];
}

function textOf(file: string): string | null {
  return orMissing(() => readFileSync(file, 'latin1'));
}

/** `boot.1` is a link, and `boot.1.1` the directory that it leads to. */
function linkOf(place: string): string | null {
  return orMissing(() => readlinkSync(place));
}

function orMissing<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    if (['ENOENT', 'EINVAL'].includes((error as NodeJS.ErrnoException).code ?? '')) return null;
    throw error;
  }
}
