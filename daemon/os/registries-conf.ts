import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import {
  type ConfFile,
  parseRegistriesConf,
  type RegistriesConf,
} from '../../image/registry/registries-conf.ts';
import { ignoreMissing } from '../tree/tree-entry.ts';

const MAIN = '/etc/containers/registries.conf';
const DROPINS = '/etc/containers/registries.conf.d';

/**
 * Where the node pulls images from, as its container runtime reads it. Read anew for each image, so that a mirror that
 * was just delivered counts.
 *
 * @param root the running root.
 * @returns no rules where the node has no such file.
 * @throws TypeError that names the file and what is wrong in it; the file system's errors.
 */
export async function readRegistriesConf(root: string): Promise<RegistriesConf> {
  const names = (await readdir(path.join(root, DROPINS)).catch(ignoreMissing)) ?? [];
  const dropins = names.filter((name) => name.endsWith('.conf')).sort();
  const files: ConfFile[] = [];
  for (const name of [MAIN, ...dropins.map((dropin) => `${DROPINS}/${dropin}`)]) {
    const text = await readFile(path.join(root, name), 'utf8').catch(ignoreMissing);
    if (text !== undefined) files.push({ name, text });
  }
  return parseRegistriesConf(files);
}
