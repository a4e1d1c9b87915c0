/**
 * Serves a mutant's text in place of its file's to the programs that tests start from the code on disk: Node loads this
 * before them (`NODE_OPTIONS=--import`).
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

/** Of the environment: the folder of `MutantOnDisk`. */
export const FOLDER_VARIABLE = 'SHALE_MUTANT';

/**
 * Names in that folder: the path of the mutated file, its text as a mutant, and what is there once a program has loaded
 * that.
 */
export const standInFiles = { file: 'file', source: 'source.ts', loaded: 'loaded' } as const;

const folder = process.env[FOLDER_VARIABLE];
if (folder !== undefined) {
  const read = (name: string) => readFileSync(path.join(folder, name), 'utf8');
  const mutated = pathToFileURL(read(standInFiles.file)).href;
  registerHooks({
    load: (url, context, nextLoad) => {
      if (url !== mutated) return nextLoad(url, context);
      writeFileSync(path.join(folder, standInFiles.loaded), '');
      return { format: 'module-typescript', source: read(standInFiles.source), shortCircuit: true };
    },
  });
}
