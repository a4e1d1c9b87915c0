import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { ignoreMissing } from '../../files/tree-entry.ts';

/** Where ostree-prepare-root(1) reads how a root is set up, below the directory that it is given. */
const CONFIGURATION = 'ostree/prepare-root.conf';
/** It goes before the files (libotcore, otcore_load_rootfs_config). */
const ARGUMENT = 'ostree.prepare-root.composefs=';
/** What ostree takes for a yes (libostree, _ostree_parse_tristate). */
export const YES: ReadonlySet<string> = new Set(['yes', 'true', '1']);
/** `signed` needs a key that may be in the initramfs alone, and with `maybe` ostree prepares no soft reboot. */
const DEMANDS: ReadonlySet<string> = new Set([...YES, 'verity']);

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
  const own = await configurationText(etc);
  const inFiles = (await rootConfigurations(directory)).map(({ composefs }) => composefs);
  if (own !== undefined) inFiles.push(composefsSetting(own));
  const inArguments = kernelArguments.flatMap((argument) =>
    argument.startsWith(ARGUMENT) ? [argument.slice(ARGUMENT.length)] : [],
  );
  const all = [...inFiles, ...inArguments];
  return all.length > 0 && all.every((setting) => DEMANDS.has(setting));
}

function configurationText(place: string): Promise<string | undefined> {
  return readFile(path.join(place, CONFIGURATION), 'utf8').catch(ignoreMissing);
}

/** Where an image may have ostree's configuration; its /etc is at either place. */
const OF_IMAGES = ['usr/lib', 'usr/etc', 'etc'] as const;

/** What one prepare-root.conf has ostree-prepare-root do. */
export const RootConfigurationSchema = z.object({
  /** For messages: as the host that runs the image has it. */
  file: z.string(),
  /** `composefs.enabled` */
  composefs: z.string(),
  /** `root.transient` or `root.transient-ro` */
  isRootTransient: z.boolean(),
  /** `etc.transient` */
  isEtcTransient: z.boolean(),
});
export type RootConfiguration = z.infer<typeof RootConfigurationSchema>;

/** @returns what a prepare-root.conf says. @param file for messages. */
export function parseRootConfiguration(file: string, text: string): RootConfiguration {
  const isOn = (group: string, key: string) => /^(true|1)$/.test(settingOf(text, group, key) ?? '');
  return {
    file,
    composefs: composefsSetting(text),
    isRootTransient: isOn('root', 'transient') || isOn('root', 'transient-ro'),
    isEtcTransient: isOn('etc', 'transient'),
  };
}

/**
 * @param tree of an image, or a deployment.
 * @returns each configuration that it has. Of two, ostree takes the one in /etc, if the initramfs has it (libotcore,
 *   otcore_load_config), and what that has is not known.
 */
export async function rootConfigurations(tree: string): Promise<readonly RootConfiguration[]> {
  const found: RootConfiguration[] = [];
  for (const place of OF_IMAGES) {
    const text = await configurationText(path.join(tree, place));
    const file = `/${place.replace('usr/etc', 'etc')}/${CONFIGURATION}`;
    if (text !== undefined) found.push(parseRootConfiguration(file, text));
  }
  return found;
}

/**
 * @param root the running root. @param booted its deployment's directory.
 * @returns the configuration that an admin or a MachineConfig has put there; nothing where the image has it so.
 */
export async function hostConfiguration(
  root: string,
  booted: string,
): Promise<RootConfiguration | undefined> {
  const text = await configurationText(path.join(root, 'etc'));
  if (text === undefined || text === (await configurationText(path.join(booted, 'usr/etc'))))
    return undefined;
  return parseRootConfiguration(`the host’s /etc/${CONFIGURATION}`, text);
}

/**
 * @returns what the kernel's command line has of it: ostree takes the first (libotcore, otcore_find_proc_cmdline_key).
 */
export function composefsArgument(kernelArguments: readonly string[]): string | undefined {
  return kernelArguments.find((argument) => argument.startsWith(ARGUMENT))?.slice(ARGUMENT.length);
}

/**
 * @param text of a prepare-root.conf, a key file (GKeyFile).
 * @returns `enabled` of its group `composefs`, the last where it is there twice; `no` where it isn't.
 */
export function composefsSetting(text: string): string {
  return settingOf(text, 'composefs', 'enabled') ?? 'no';
}

function settingOf(text: string, wanted: string, key: string): string | undefined {
  let group = '';
  let found: string | undefined;
  for (const line of text.split('\n').map((each) => each.trim())) {
    const header = /^\[(?<name>[^[\]]*)\]$/.exec(line);
    if (header !== null) group = header.groups?.['name'] ?? '';
    const setting = /^(?<name>[^#=\s]+)\s*=(?<value>.*)$/.exec(line);
    if (group === wanted && setting?.groups?.['name'] === key) found = setting.groups['value']?.trim();
  }
  return found;
}
