import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { DigestedPullspec } from '../../../api/references.ts';
import type { StageOptions } from '../backend.ts';
import type { OsHost } from '../os-host.ts';
import { extractLayer, LayerNotesSchema, writeAttributed } from './extract-layer.ts';
import {
  type ImageRecord,
  imageRef,
  layerRef,
  REFS,
  readImageRecord,
  stateDirectory,
  writeImageRecord,
} from './image-record.ts';
import { requireSpace, type SourceLayer, spaceNeeded } from './image-source.ts';
import { imageKernelArguments } from './kernel-arguments.ts';
import { mergeLayer } from './merge-layer.ts';
import type { Ostree } from './ostree.ts';
import { rootConfigurations } from './prepare-root.ts';
import { listRefs } from './refs.ts';
import { hasSelinuxPolicy } from './selinux-policy.ts';

interface ImportContext extends Pick<OsHost, 'sysroot' | 'commandPath' | 'source'> {
  readonly ostree: Ostree;
}

interface ImportOptions {
  /** See StageOptions. */
  readonly accept?: StageOptions['accept'] | undefined;
  readonly onProgress?: ((bytesDone: number, bytesTotal: number) => void) | undefined;
  /** Whether it has to be known how its root is set up: the record of an earlier version of Shale lacks that. */
  readonly withRoot?: boolean;
  readonly signal: AbortSignal;
}

/**
 * Brings an image into the repository: each layer that isn't there as a commit of its own, then all of them merged into
 * the commit that can be deployed. Nothing to do when it is there already. Killed at any point, only whole commits have
 * refs, and the image's is the last; what else is left is removed by the next import.
 *
 * @returns what there is to know of the image. @throws DiskSpaceError, LayerRefused, OsCommandError, or the source's
 *   error.
 */
export async function importImage(
  context: ImportContext,
  image: DigestedPullspec,
  { accept, onProgress, withRoot = false, signal }: ImportOptions,
): Promise<ImageRecord> {
  const refs = await listRefs(context.sysroot, REFS);
  const known = await readImageRecord(stateDirectory(context.sysroot), image);
  const isWhole = known?.rootConfigurations !== undefined || !withRoot;
  if (known !== undefined && isWhole && refs.has(imageRef(image))) {
    accept?.(known.labels);
    return known;
  }
  const { labels, layers } = await context.source.open(image, signal);
  accept?.(labels);
  const missing = layers.filter(({ diffId }) => !refs.has(layerRef(diffId)));
  await requireSpace(context.sysroot, spaceNeeded(missing));
  const temporary = path.join(stateDirectory(context.sysroot), 'tmp');
  await rm(temporary, { recursive: true, force: true });
  await mkdir(temporary, { recursive: true, mode: 0o700 });
  try {
    const total = missing.reduce((sum, { size }) => sum + size, 0);
    let done = 0;
    const imported = new Set<string>();
    for (const layer of missing) {
      // The same layer may occur twice in one image (an empty one, mostly).
      if (imported.has(layer.diffId)) continue;
      await importLayer(context, layer, temporary, {
        onBytes: (bytes) => {
          done += bytes;
          onProgress?.(done, total);
        },
        signal,
      });
      imported.add(layer.diffId);
    }
    const tree = await mergeLayers(context, layers, temporary, signal);
    const kernelArguments = [...(await imageKernelArguments(tree))];
    const record = {
      labels: { ...labels },
      layers: layers.map(({ diffId }) => diffId),
      kernelArguments,
      rootConfigurations: await rootConfigurations(tree),
    };
    await writeImageRecord(stateDirectory(context.sysroot), image, record);
    const directory = context.commandPath(tree);
    await context.ostree.commit(
      {
        ref: imageRef(image),
        directory,
        metadata: { 'shale.image': image },
        // Layers have no labels of their own, and ostree gives a deployment's /usr those of its commit.
        ...((await hasSelinuxPolicy(tree)) ? { selinuxPolicy: directory } : {}),
      },
      signal,
    );
    return record;
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

/** A layer's commit: its own entries in `content`, what a directory can't hold in `notes.json`. */
async function importLayer(
  { ostree, commandPath }: ImportContext,
  layer: SourceLayer,
  temporary: string,
  { onBytes, signal }: { readonly onBytes: (bytes: number) => void; readonly signal: AbortSignal },
): Promise<void> {
  const directory = await mkdtemp(path.join(temporary, 'layer-'));
  const content = path.join(directory, 'content');
  await mkdir(content, { mode: 0o755 });
  const { notes, attributes } = await extractLayer(layer.read(onBytes, signal), content, signal);
  await writeFile(path.join(directory, 'notes.json'), JSON.stringify(notes));
  const overlay = `${directory}.tar`;
  if (attributes.size > 0) await writeAttributed(overlay, content, attributes);
  await ostree.commit(
    {
      ref: layerRef(layer.diffId),
      directory: commandPath(directory),
      metadata: {},
      ...(attributes.size === 0 ? {} : { overlay: commandPath(overlay) }),
    },
    signal,
  );
  await rm(overlay, { force: true });
}

async function mergeLayers(
  { ostree, commandPath }: ImportContext,
  layers: readonly SourceLayer[],
  temporary: string,
  signal: AbortSignal,
): Promise<string> {
  const tree = path.join(temporary, 'tree');
  await mkdir(tree, { mode: 0o755 });
  for (const [index, { diffId }] of layers.entries()) {
    const layer = path.join(temporary, `checkout-${index}`);
    await ostree.checkout({ ref: layerRef(diffId), destination: commandPath(layer) }, signal);
    const notes = LayerNotesSchema.parse(JSON.parse(await readFile(path.join(layer, 'notes.json'), 'utf8')));
    await mergeLayer(path.join(layer, 'content'), notes, tree, signal);
  }
  return tree;
}
