import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Json } from '@shale/apiserver/json.ts';
import { applyJsonPatch } from '@shale/apiserver/patch/json-patch.ts';
import { parse, parseAllDocuments } from 'yaml';
import { z } from 'zod';
import type { KubernetesObject } from '../../../api/object.ts';
import { present } from '../../../api/present.ts';

const JsonPatch = z.strictObject({
  target: z.strictObject({ kind: z.string(), name: z.string().optional() }),
  /** YAML or JSON of the operations (RFC 6902). */
  patch: z.string(),
});
type JsonPatch = z.infer<typeof JsonPatch>;

const ConfigMapGenerator = z.strictObject({
  name: z.string(),
  namespace: z.string().optional(),
  files: z.array(z.string()),
  options: z.strictObject({
    disableNameSuffixHash: z.literal(true),
    labels: z.record(z.string(), z.string()).default({}),
  }),
});
type ConfigMapGenerator = z.infer<typeof ConfigMapGenerator>;

/** What Shale's own kustomizations use; a field beside these would be left out silently, so it is refused. */
const Kustomization = z.strictObject({
  apiVersion: z.enum(['kustomize.config.k8s.io/v1beta1', 'kustomize.config.k8s.io/v1alpha1']).optional(),
  kind: z.enum(['Kustomization', 'Component']).optional(),
  resources: z.array(z.string()).default([]),
  components: z.array(z.string()).default([]),
  configMapGenerator: z.array(ConfigMapGenerator).default([]),
  patches: z.array(JsonPatch).default([]),
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
 * @param seen what a component is added to: its patches are about these objects too.
 * @returns the objects, in the order in which the kustomizations name them.
 * @throws Error that names the file and the field: one that isn't known here, or that can't be read.
 */
export async function readKustomization(
  directory: string,
  before: readonly KubernetesObject[] = [],
): Promise<KubernetesObject[]> {
  const file = path.join(directory, 'kustomization.yaml');
  const parsed = Kustomization.safeParse(parse(await readFile(file, 'utf8')));
  if (!parsed.success) throw new Error(`${file}: ${z.prettifyError(parsed.error)}`);
  let objects = [...before];
  for (const resource of parsed.data.resources) {
    const place = path.join(directory, resource);
    const isDirectory = (await stat(place)).isDirectory();
    objects.push(...(isDirectory ? await readKustomization(place) : await readObjects(place)));
  }
  for (const component of parsed.data.components) {
    objects = await readKustomization(path.join(directory, component), objects);
  }
  for (const generator of parsed.data.configMapGenerator)
    objects.push(await generateConfigMap(directory, generator));
  for (const patch of parsed.data.patches) objects = applyPatch(objects, patch, file);
  return objects.map((object) => transform(object, parsed.data));
}

async function generateConfigMap(
  directory: string,
  { name, namespace, files, options }: ConfigMapGenerator,
): Promise<KubernetesObject> {
  const data: Record<string, string> = {};
  for (const file of files) data[path.basename(file)] = await readFile(path.join(directory, file), 'utf8');
  const metadata = { name, ...present({ namespace }), labels: options.labels };
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata, data } as KubernetesObject;
}

/** @throws Error for a patch without an object to patch, and for one that is no list of operations. */
function applyPatch(
  objects: readonly KubernetesObject[],
  { target, patch }: JsonPatch,
  file: string,
): KubernetesObject[] {
  const isTarget = ({ kind, metadata }: KubernetesObject) =>
    kind === target.kind && (target.name === undefined || metadata.name === target.name);
  if (!objects.some(isTarget)) {
    throw new Error(`${file}: there is no ${target.kind} ${target.name ?? ''} to patch`);
  }
  const operations = parse(patch) as Json;
  return objects.map((object) =>
    isTarget(object)
      ? (applyJsonPatch(object as unknown as Json, operations) as unknown as KubernetesObject)
      : object,
  );
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
