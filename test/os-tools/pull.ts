import path from 'node:path';
import { parseDigestedPullspec } from '../../api/references.ts';
import { LAYER_REFS, layerRefOf } from '../../daemon/os/image-tool/bring-image.ts';
import { osCommandRunner, type RunOsCommand } from '../../daemon/os/os-command.ts';
import { listDeployments } from '../../daemon/os/ostree/deployments.ts';
import { imageRef, layerRef } from '../../daemon/os/ostree/image-record.ts';
import type { SourceLayer } from '../../daemon/os/ostree/image-source.ts';
import { importImage } from '../../daemon/os/ostree/import-image.ts';
import { imageKernelArguments, kargsArchitecture } from '../../daemon/os/ostree/kernel-arguments.ts';
import { ostree } from '../../daemon/os/ostree/ostree.ts';
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
}

/**
 * Brings an image to a node's repository.
 *
 * @param dir of the node. @param name an image by digest. @throws Refusal when the registry doesn't have it.
 */
export async function pullImage(dir: string, name: string, signal: AbortSignal): Promise<PulledImage> {
  const { sysroot } = directoryNodeLayout(dir);
  const image = parseDigestedPullspec(name);
  const images = await readImages(dir);
  if (!images.has(image)) throw new Refusal(`error: reading manifest in ${image}: manifest unknown\n`);
  const run = osCommandRunner();
  const source = memorySource(images);
  const { kernelArguments } = await importImage(
    {
      ostree: ostree(run, sysroot),
      sysroot,
      commandPath: (place) => place,
      source,
      architecture: kargsArchitecture(process.arch),
    },
    image,
    { signal },
  );
  await nameLayers(sysroot, (await source.open(image, signal)).layers, run, signal);
  return { ref: imageRef(image), kernelArguments };
}

/** Gives imported layers the refs by which the image tools know them. */
async function nameLayers(
  sysroot: string,
  layers: readonly SourceLayer[],
  run: RunOsCommand,
  signal: AbortSignal,
): Promise<void> {
  const known = await ostree(run, sysroot).refs(LAYER_REFS, signal);
  for (const { diffId, digest } of layers) {
    const ref = layerRefOf(digest);
    if (known.has(ref)) continue;
    const repo = `--repo=${path.join(sysroot, 'ostree/repo')}`;
    await run(['ostree', 'refs', repo, `--create=${ref}`, layerRef(diffId)], {
      timeoutMs: TIMEOUT_MS,
      signal,
    });
  }
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
    ofImage:
      booted === undefined
        ? []
        : await imageKernelArguments(booted.directory, kargsArchitecture(process.arch)),
  };
}
