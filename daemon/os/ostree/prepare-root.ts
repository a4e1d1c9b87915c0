import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { ignoreMissing } from '../../tree/tree-entry.ts';

/** Where ostree-prepare-root(1) reads how a root is set up, below the directory that it is given. */
const CONFIGURATION = 'ostree/prepare-root.conf';
/** It goes before the files (libotcore, otcore_load_rootfs_config). */
const ARGUMENT = 'ostree.prepare-root.composefs=';
/** `signed` needs a key that may be in the initramfs alone, and with `maybe` ostree prepares no soft reboot. */
const DEMANDS: ReadonlySet<string> = new Set(['yes', 'true', '1', 'verity']);

interface RootToSetUp {
  /** Of the deployment. */
  readonly directory: string;
  /** The running one, which is merged into the deployment's. */
  readonly etc: string;
  readonly kernelArguments: readonly string[];
}

/**
 * Finds out whether a deployment's root is to be a composefs for certain: ostree prepares a soft reboot into no other
 * (libostree, _ostree_prepare_soft_reboot).
 *
 * @returns whether everything that is said of it demands one, and anything is said.
 */
export async function demandsComposefs({ directory, etc, kernelArguments }: RootToSetUp): Promise<boolean> {
  const places = [...['usr/lib', 'usr/etc', 'etc'].map((place) => path.join(directory, place)), etc];
  const texts = await Promise.all(
    places.map((place) => readFile(path.join(place, CONFIGURATION), 'utf8').catch(ignoreMissing)),
  );
  const inFiles = texts.flatMap((text) => (text === undefined ? [] : [composefsSetting(text)]));
  const inArguments = kernelArguments.flatMap((argument) =>
    argument.startsWith(ARGUMENT) ? [argument.slice(ARGUMENT.length)] : [],
  );
  const all = [...inFiles, ...inArguments];
  return all.length > 0 && all.every((setting) => DEMANDS.has(setting));
}

/**
 * @param text of a prepare-root.conf, a key file (GKeyFile).
 * @returns `enabled` of its group `composefs`, the last where it is there twice; `no` where it isn't.
 */
export function composefsSetting(text: string): string {
  let group = '';
  let enabled = 'no';
  for (const line of text.split('\n').map((each) => each.trim())) {
    const header = /^\[(?<name>[^[\]]*)\]$/.exec(line);
    if (header !== null) group = header.groups?.['name'] ?? '';
    const setting = /^enabled\s*=\s*(?<value>.*)$/.exec(line);
    if (group === 'composefs' && setting !== null) enabled = setting.groups?.['value'] ?? '';
  }
  return enabled;
}
