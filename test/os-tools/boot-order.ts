import { readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';

const VERSION = /^version (\d+)$/m;

/**
 * Swaps the two first deployments of a directory node in the boot order, as ostree_sysroot_write_deployments does for
 * the image tools; Debian's ostree has no command for it. The order is that of the entries' versions.
 *
 * @param dir of the node.
 */
export async function swapBootOrder(dir: string): Promise<void> {
  const directory = path.join(dir, 'root/sysroot/boot/loader/entries');
  const entries: { readonly file: string; readonly text: string; readonly version: number }[] = [];
  for (const name of await readdir(directory)) {
    const file = path.join(directory, name);
    const text = await readFile(file, 'utf8');
    entries.push({ file, text, version: Number(VERSION.exec(text)?.[1]) });
  }
  const [first, second] = entries.sort((a, b) => b.version - a.version);
  if (first === undefined || second === undefined) throw new Error(`${directory}: expected two entries`);
  await writeFile(first.file, withVersion(first.text, second.version));
  await writeFile(second.file, withVersion(second.text, first.version));
}

function withVersion(text: string, version: number): string {
  return text.replace(VERSION, `version ${version}`);
}
