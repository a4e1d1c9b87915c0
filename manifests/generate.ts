import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { isPageByHand, referencePages } from '../docs/generate/reference-pages.ts';
import { crdFiles } from './crd-files.ts';

/**
 * Writes manifests/crds from api/, and the generated part of docs/reference; or with --check says which files are
 * stale.
 *
 *   node manifests/generate.ts [--check]
 */
const ROOT = path.join(import.meta.dirname, '..');
/** Where every file is generated, or written by hand and known to be. */
const DIRECTORIES = ['manifests/crds', 'docs/reference', 'docs/reference/kinds'] as const;

/** @returns the generated files by their path in the project, as they should be. */
async function generatedFiles(): Promise<ReadonlyMap<string, string>> {
  const inDirectory = (directory: string, files: ReadonlyMap<string, string>) =>
    [...files].map(([name, content]): [string, string] => [`${directory}/${name}`, content]);
  return new Map([
    ...inDirectory('manifests/crds', crdFiles()),
    ...inDirectory('docs/reference', await referencePages()),
  ]);
}

/** @returns paths of files that are missing, different, or there without reason. */
export async function staleFiles(): Promise<string[]> {
  const wanted = await generatedFiles();
  const stale: string[] = [];
  for (const directory of DIRECTORIES) {
    const entries = await readdir(path.join(ROOT, directory), { withFileTypes: true }).catch(() => []);
    const present = entries.filter((entry) => entry.isFile()).map(({ name }) => `${directory}/${name}`);
    stale.push(...present.filter((file) => !wanted.has(file) && !isByHand(file)));
  }
  for (const [file, content] of wanted) {
    const found = await readFile(path.join(ROOT, file), 'utf8').catch(() => undefined);
    if (found !== content) stale.push(file);
  }
  return stale.sort();
}

function isByHand(file: string): boolean {
  return isPageByHand(path.posix.relative('docs/reference', file));
}

async function write(): Promise<void> {
  const wanted = await generatedFiles();
  for (const file of await staleFiles()) await rm(path.join(ROOT, file), { force: true });
  for (const directory of DIRECTORIES) await mkdir(path.join(ROOT, directory), { recursive: true });
  for (const [file, content] of wanted) await writeFile(path.join(ROOT, file), content);
}

if (import.meta.main) {
  if (process.argv.includes('--check')) {
    const stale = await staleFiles();
    if (stale.length > 0) {
      process.stderr.write(`stale: ${stale.join(', ')}; run make manifests and commit the result\n`);
      process.exitCode = 1;
    }
  } else {
    await write();
  }
}
