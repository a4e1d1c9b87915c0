import path from 'node:path';
import { stringify } from 'yaml';
import { readKustomization } from '../workshop/sandbox/manifests/kustomization.ts';

const OVERLAYS = path.join(import.meta.dirname, '../manifests/overlays');
const IMAGE = 'shale:latest';

/**
 * @param overlay a directory of manifests/overlays.
 * @param image by digest.
 * @returns what `kubectl apply -k` would apply, as one file.
 */
export async function installManifest(overlay: string, image: string): Promise<string> {
  const objects = await readKustomization(path.join(OVERLAYS, overlay));
  const documents = objects.map((object) =>
    stringify(withImage(object, image), { lineWidth: 0, aliasDuplicateObjects: false }),
  );
  return documents.join('---\n');
}

function withImage(value: unknown, image: string): unknown {
  if (value === IMAGE) return image;
  if (Array.isArray(value)) return value.map((item) => withImage(item, image));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withImage(item, image)]));
}
