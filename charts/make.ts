import { mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { chartFiles } from './chart-files.ts';

/**
 * Writes the Helm chart: it repeats what manifests/ says, so it is made where it is packaged and not kept.
 *
 *   node charts/make.ts
 */
const DIST = path.join(import.meta.dirname, 'dist/shale');

/** @param directory of the chart; what is in it goes. */
export async function writeChart(directory: string): Promise<void> {
  await rm(directory, { recursive: true, force: true });
  for (const [name, content] of await chartFiles()) {
    const file = path.join(directory, name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, content);
  }
}

if (import.meta.main) await writeChart(DIST);
