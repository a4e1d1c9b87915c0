import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { stringify } from 'yaml';
import { crdOf } from '../api/crd.ts';
import { crdDefinitions } from '../api/crd-definitions.ts';

/**
 * Writes manifests/crds from api/, or with --check says which files are stale.
 *
 *   node manifests/generate.ts [--check]
 */
const directory = path.join(import.meta.dirname, 'crds');

/** @returns the files of manifests/crds by name, as they should be. */
export function crdFiles(): ReadonlyMap<string, string> {
  const header = '# Generated from api/ by `make manifests`. Do not edit.\n';
  const files = new Map<string, string>();
  const names: string[] = [];
  for (const definition of crdDefinitions) {
    const name = `${definition.kind.group}_${definition.kind.plural}.yaml`;
    names.push(name);
    files.set(name, header + stringify(crdOf(definition), { lineWidth: 110, aliasDuplicateObjects: false }));
  }
  const kustomization = {
    apiVersion: 'kustomize.config.k8s.io/v1beta1',
    kind: 'Kustomization',
    resources: names,
  };
  files.set('kustomization.yaml', header + stringify(kustomization));
  return files;
}

/** @returns names of files that are missing, different, or there without reason. */
export async function staleFiles(): Promise<string[]> {
  const wanted = crdFiles();
  const present = await readdir(directory).catch(() => [] as string[]);
  const stale = present.filter((name) => !wanted.has(name));
  for (const [name, content] of wanted) {
    const found = await readFile(path.join(directory, name), 'utf8').catch(() => undefined);
    if (found !== content) stale.push(name);
  }
  return stale.sort();
}

async function write(): Promise<void> {
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true });
  for (const [name, content] of crdFiles()) await writeFile(path.join(directory, name), content);
}

if (import.meta.main) {
  if (process.argv.includes('--check')) {
    const stale = await staleFiles();
    if (stale.length > 0) {
      process.stderr.write(
        `manifests/crds is stale: ${stale.join(', ')}; run make manifests and commit the result\n`,
      );
      process.exitCode = 1;
    }
  } else {
    await write();
  }
}
