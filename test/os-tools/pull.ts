import path from 'node:path';
import { parseDigestedPullspec } from '../../api/references.ts';
import { LAYER_REFS, layerRefOf } from '../../daemon/os/image-tool/bring-image.ts';
import { osCommandRunner, type RunOsCommand } from '../../daemon/os/os-command.ts';
import { listDeployments } from '../../daemon/os/ostree/deployments.ts';
import { imageRef, layerRef } from '../../daemon/os/ostree/image-record.ts';
import type { SourceLayer } from '../../daemon/os/ostree/image-source.ts';
import { importImage } from '../../daemon/os/ostree/import-image.ts';
import { imageKernelArguments } from '../../daemon/os/ostree/kernel-arguments.ts';
import { ostree } from '../../daemon/os/ostree/ostree.ts';
import { listRefs } from '../../daemon/os/ostree/refs.ts';
import { directoryNodeLayout, readDirectoryMachine } from '../../workshop/sandbox/node/directory-host.ts';
import { memorySource } from '../../workshop/sandbox/node/memory-source.ts';
import { readImages } from './image-store.ts';
import { Refusal } from './stand-in.ts';

const TIMEOUT_MS = 600_000;

export interface PulledImage {
  /** Of its commit. */
  readonly ref: string;
  /** Of its kargs.d. */
  readonly kernelArguments: readonly string[];
  /** Whether a layer of it was missing. */
  readonly isNew: boolean;
}

/**
 * Brings an image to a node's repository.
 *
 * @param dir of the node. @param name an image by digest. @throws Refusal when the registry doesn't have it.
 */
export async function pullImage(dir: string, name: string, signal: AbortSignal): Promise<PulledImage> {
  const { sysroot } = directoryNodeLayout(dir);
  const image = parseDigestedPullspec(name);
  const images = await readImages(dir, [image]);
  if (!images.has(image)) throw new Refusal(`error: reading manifest in ${image}: manifest unknown\n`);
  const run = osCommandRunner();
  const source = memorySource(images);
  const { kernelArguments } = await importImage(
    {
      ostree: ostree(run, sysroot),
      sysroot,
      commandPath: (place) => place,
      source,
    },
    image,
    { signal },
  );
  const isNew = await nameLayers(sysroot, (await source.open(image, signal)).layers, run, signal);
  return { ref: imageRef(image), kernelArguments, isNew };
}

/** Gives imported layers the refs by which the image tools know them. @returns whether one had none. */
async function nameLayers(
  sysroot: string,
  layers: readonly SourceLayer[],
  run: RunOsCommand,
  signal: AbortSignal,
): Promise<boolean> {
  const known = await listRefs(sysroot, LAYER_REFS);
  let isNew = false;
  for (const { diffId, digest } of layers) {
    const ref = layerRefOf(digest);
    if (known.has(ref)) continue;
    isNew = true;
    const repo = `--repo=${path.join(sysroot, 'ostree/repo')}`;
    await run(['ostree', 'refs', repo, `--create=${ref}`, layerRef(diffId)], {
      timeoutMs: TIMEOUT_MS,
      signal,
    });
  }
  return isNew;
}

/**
 * Forgets the layers that no deployment's image has, as bootc does at the end of each switch.
 *
 * @param dir of the node. @param names the images of its deployments. @returns whether there was one.
 */
export async function pruneLayers(
  dir: string,
  names: readonly string[],
  signal: AbortSignal,
): Promise<boolean> {
  const { sysroot } = directoryNodeLayout(dir);
  const run = osCommandRunner();
  const used = [...new Set(names.map(parseDigestedPullspec))];
  const images = await readImages(dir, used);
  const source = memorySource(images);
  const kept = new Set<string>();
  for (const image of used) {
    const layers = images.has(image) ? (await source.open(image, signal)).layers : [];
    for (const { digest } of layers) kept.add(layerRefOf(digest));
  }
  const gone = [...(await listRefs(sysroot, LAYER_REFS))].filter((ref) => !kept.has(ref));
  await ostree(run, sysroot).deleteRefs(gone, signal);
  return gone.length > 0;
}

export interface BootedArguments {
  readonly present: readonly string[];
  /** Those of the booted image's kargs.d. */
  readonly ofImage: readonly string[];
}

/** @returns the kernel arguments of a node's booted deployment. @param dir of the node. */
export async function bootedKernelArguments(dir: string): Promise<BootedArguments> {
  const layout = directoryNodeLayout(dir);
  const { deployment } = await readDirectoryMachine(layout);
  const booted = (await listDeployments(layout.sysroot)).find(({ directory }) =>
    directory.endsWith(deployment),
  );
  return {
    present: booted?.kernelArguments ?? [],
    ofImage: booted === undefined ? [] : await imageKernelArguments(booted.directory),
  };
}
