import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { DigestedPullspec } from '../../../api/references.ts';
import { PrepareRefused } from '../../records/current.ts';
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

/** Where an image may have ostree's configuration; its /etc is at either place. */
const OF_IMAGES = ['usr/lib', 'usr/etc', 'etc'];
const SIGNED = 'signed';

/** @param tree of an image. @returns the file that demands a signed composefs, as the image has it; undefined where none does. */
export async function signedByFile(tree: string): Promise<string | undefined> {
  for (const place of OF_IMAGES) {
    const text = await readFile(path.join(tree, place, CONFIGURATION), 'utf8').catch(ignoreMissing);
    if (text !== undefined && composefsSetting(text) === SIGNED)
      return `/${place.replace('usr/etc', 'etc')}/${CONFIGURATION}`;
  }
  return undefined;
}

interface RootToBoot {
  readonly image: DigestedPullspec;
  /** As of signedByFile. */
  readonly signedBy: string | undefined;
  readonly kernelArguments: readonly string[];
}

/**
 * Refuses a root that no host boots: ostree-prepare-root demands that the key of the host has signed the commit, and the
 * commit of an image is made on the node, of the image's layers. A machine would end in its initramfs.
 *
 * @throws PrepareRefused
 */
export function refuseSignedRoot({ image, signedBy, kernelArguments }: RootToBoot): void {
  const argument = kernelArguments.findLast((each) => each.startsWith(ARGUMENT));
  const value = argument?.slice(ARGUMENT.length);
  const where =
    value === SIGNED ? `the kernel argument ${argument}` : value === undefined ? signedBy : undefined;
  if (where === undefined) return;
  throw new PrepareRefused(
    `${image}: ${where} demands a signed composefs, and the commit that the node makes of an image has no signature, so it would not boot; expected composefs.enabled = yes or verity`,
  );
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
