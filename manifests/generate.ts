import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { crdFiles } from './crd-files.ts';

/**
 * Writes manifests/crds from api/; or with --check says which files are stale.
 *
 *   node manifests/generate.ts [--check]
 */
const CRDS = path.join(import.meta.dirname, 'crds');

/** @returns names of files in manifests/crds that are missing, different, or there without reason. */
export async function staleFiles(): Promise<string[]> {
  const wanted = crdFiles();
  const present = await readdir(CRDS).catch(() => []);
  const stale = present.filter((name) => !wanted.has(name));
  for (const [name, content] of wanted) {
    const found = await readFile(path.join(CRDS, name), 'utf8').catch(() => undefined);
    if (found !== content) stale.push(name);
  }
  return stale.sort();
}

async function write(): Promise<void> {
  await mkdir(CRDS, { recursive: true });
  for (const name of await staleFiles()) await rm(path.join(CRDS, name), { force: true });
  for (const [name, content] of crdFiles()) await writeFile(path.join(CRDS, name), content);
}

if (import.meta.main) {
  if (process.argv.includes('--check')) {
    const stale = await staleFiles();
    if (stale.length > 0) {
      process.stderr.write(
        `manifests/crds: stale: ${stale.join(', ')}; run make manifests and commit the result\n`,
      );
      process.exitCode = 1;
    }
  } else {
    await write();
  }
}
