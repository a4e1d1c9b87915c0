import path from 'node:path';
import type { KubernetesObject } from '../../../api/object.ts';
import { readObjects } from '../../../cli/change/object-files.ts';

export const EXAMPLES = path.join(import.meta.dirname, '../../../examples');

/** @returns the objects of files of examples/, by their names there. @throws CommandError that names the file. */
export function readExamples(...names: readonly string[]): Promise<KubernetesObject[]> {
  return readObjects(names.map((name) => path.join(EXAMPLES, name)));
}
