import { parseDigestedPullspec } from '../../api/references.ts';
import { directoryNodeLayout, readDirectoryMachine } from '../../daemon/host/directory-host.ts';
import { osCommandRunner } from '../../daemon/os/os-command.ts';
import { listDeployments } from '../../daemon/os/ostree/deployments.ts';
import { imageRef } from '../../daemon/os/ostree/image-record.ts';
import { importImage } from '../../daemon/os/ostree/import-image.ts';
import { imageKernelArguments, kargsArchitecture } from '../../daemon/os/ostree/kernel-arguments.ts';
import { memorySource } from '../../daemon/os/ostree/memory-source.ts';
import { ostree } from '../../daemon/os/ostree/ostree.ts';
import { readImages } from './image-store.ts';
import { Refusal } from './stand-in.ts';

const TIMEOUT_MS = 60_000;

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
export async function pullImage(dir: string, name: string): Promise<PulledImage> {
  const { sysroot } = directoryNodeLayout(dir);
  const image = parseDigestedPullspec(name);
  const images = await readImages(dir);
  if (!images.has(image)) throw new Refusal(`error: reading manifest in ${image}: manifest unknown\n`);
  const { kernelArguments } = await importImage(
    {
      ostree: ostree(osCommandRunner(), sysroot),
      sysroot,
      commandPath: (place) => place,
      source: memorySource(images),
      architecture: kargsArchitecture(process.arch),
    },
    image,
    { signal: AbortSignal.timeout(TIMEOUT_MS) },
  );
  return { ref: imageRef(image), kernelArguments };
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
