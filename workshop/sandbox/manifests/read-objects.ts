import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { parseAllDocuments } from 'yaml';
import type { KubernetesObject } from '../../../api/object.ts';

/**
 * Reads the objects of this repository's own YAML; `shale`'s commands read what people write, and check more.
 *
 * @param place a file, or a directory: its .yaml files, by name.
 * @returns every document, in order.
 * @throws YAMLParseError for what is not YAML.
 */
export async function readObjects(place: string): Promise<KubernetesObject[]> {
  const isDirectory = (await stat(place)).isDirectory();
  const names = isDirectory ? (await readdir(place)).filter((name) => name.endsWith('.yaml')).sort() : [''];
  const objects: KubernetesObject[] = [];
  for (const name of names) {
    const text = await readFile(path.join(place, name), 'utf8');
    // Kubernetes reads YAML 1.1, where a mode written 0644 is octal.
    for (const document of parseAllDocuments(text, { version: '1.1' })) {
      const [error] = document.errors;
      if (error !== undefined) throw error;
      const object: unknown = document.toJS();
      if (object !== null) objects.push(object as KubernetesObject);
    }
  }
  return objects;
}
