import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { ignoreMissing } from '../../tree/tree-entry.ts';
import { readDictionary, readNumbers } from './gvariant.ts';

/** What ostree-prepare-root leaves for a host that it has booted (libotcore, OTCORE_RUN_BOOTED_KEY_…). */
const BOOTED_FILE = 'run/ostree-booted';
const BACKING_ROOT = 'backing-root-device-inode';

/** A directory as stat(2) tells it from all others. */
export interface DirectoryIdentity {
  readonly dev: bigint;
  readonly ino: bigint;
}

/**
 * @param root the running root.
 * @returns the booted deployment's directory, which with composefs is not the running root; nothing where ostree is older
 *   than 2023.4 and doesn't say: then it is. @throws GVariantError when the note can't be read.
 */
export async function bootedDeployment(root: string): Promise<DirectoryIdentity | undefined> {
  const bytes = await readFile(path.join(root, BOOTED_FILE)).catch(ignoreMissing);
  return bytes === undefined ? undefined : parseBootedNote(bytes);
}

/** @returns what an ostree-booted file says of the deployment's directory. @throws GVariantError */
export function parseBootedNote(bytes: Uint8Array): DirectoryIdentity | undefined {
  const value = readDictionary(bytes).get(BACKING_ROOT);
  if (value?.type !== '(tt)') return undefined;
  const [dev, ino] = readNumbers(value.bytes);
  return dev === undefined || ino === undefined ? undefined : { dev, ino };
}
