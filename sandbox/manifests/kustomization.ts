import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import type { KubernetesObject } from '../../api/object.ts';
import { readObjects } from '../../cli/object-files.ts';

/** What Shale's own kustomizations use; a field beside these would be left out silently, so it is refused. */
const Kustomization = z.strictObject({
  apiVersion: z.literal('kustomize.config.k8s.io/v1beta1').optional(),
  kind: z.literal('Kustomization').optional(),
  resources: z.array(z.string()).default([]),
  labels: z.array(z.strictObject({ pairs: z.record(z.string(), z.string()) })).default([]),
  images: z
    .array(
      z.strictObject({ name: z.string(), newName: z.string().optional(), newTag: z.string().optional() }),
    )
    .default([]),
});
type Kustomization = z.infer<typeof Kustomization>;
type ImageChange = Kustomization['images'][number];

/**
 * Reads a directory's objects as `kubectl kustomize` does, as far as Shale's manifests need it: so that the sandbox
 * installs what a cluster installs, on a machine without kubectl.
 *
 * @returns the objects, in the order in which the kustomizations name them.
 * @throws Error that names the file and the field: one that isn't known here, or that can't be read.
 */
export async function readKustomization(directory: string): Promise<KubernetesObject[]> {
  const file = path.join(directory, 'kustomization.yaml');
  const parsed = Kustomization.safeParse(parse(await readFile(file, 'utf8')));
  if (!parsed.success) throw new Error(`${file}: ${z.prettifyError(parsed.error)}`);
  const objects: KubernetesObject[] = [];
  for (const resource of parsed.data.resources) {
    const place = path.join(directory, resource);
    const isDirectory = (await stat(place)).isDirectory();
    objects.push(...(isDirectory ? await readKustomization(place) : await readObjects([place])));
  }
  return objects.map((object) => transform(object, parsed.data));
}

function transform(object: KubernetesObject, { labels, images }: Kustomization): KubernetesObject {
  const pairs = Object.assign({}, ...labels.map((label) => label.pairs)) as Record<string, string>;
  const changed = changeImages(object, images) as KubernetesObject;
  if (Object.keys(pairs).length === 0) return changed;
  return { ...changed, metadata: { ...changed.metadata, labels: { ...changed.metadata.labels, ...pairs } } };
}

/** Kustomize looks for `containers` and `initContainers` wherever they are. */
function changeImages(value: unknown, images: readonly ImageChange[], field = ''): unknown {
  if (Array.isArray(value)) return value.map((item) => changeImages(item, images, field));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, item]: [string, unknown]) => {
    const isImage = key === 'image' && /^(init)?containers$/i.test(field) && typeof item === 'string';
    return [key, isImage ? changeImage(item, images) : changeImages(item, images, key)];
  });
  return Object.fromEntries(entries);
}

function changeImage(image: string, changes: readonly ImageChange[]): string {
  const [, name = image, suffix = ''] = /^(.*?)((?::[^/:@]+)?(?:@.+)?)$/.exec(image) ?? [];
  const change = changes.find((candidate) => candidate.name === name);
  if (change === undefined) return image;
  return `${change.newName ?? name}${change.newTag === undefined ? suffix : `:${change.newTag}`}`;
}
