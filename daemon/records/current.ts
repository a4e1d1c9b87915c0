import { z } from 'zod';
import { imageLabels } from '../../api/names.ts';
import { present } from '../../api/present.ts';
import { DigestedPullspecSchema } from '../../api/references.ts';
import type { NodeConfig } from '../../machineconfig/node-config.ts';
import { emptyNodeConfig } from '../../machineconfig/node-config.ts';
import { noPackages, type PackageSet } from '../../machineconfig/os-packages.ts';
import { parseNodeConfig } from '../../machineconfig/parse-node-config.ts';
import { formatProblem } from '../../machineconfig/problem.ts';
import { CarriedConfig } from '../../machineconfig/rendered-annotations.ts';
import { stateRecord } from './durable-json.ts';

export const Current = z.discriminatedUnion('mode', [
  z.object({
    version: z.literal(1),
    mode: z.literal('Standard'),
    /** Name of the rendered config that the daemon has written. */
    config: z.string(),
    /** That config as an object: what to compare the next one with, and what to undo. */
    rendered: CarriedConfig,
    baseImage: z.string().exactOptional(),
    /** Kernel arguments beyond the image's own that the daemon added to the deployment which the node runs. */
    kernelArguments: z.array(z.string()),
    /** Packages that the daemon had the host install and remove. */
    packages: z.object({ installed: z.array(z.string()), removed: z.array(z.string()) }).exactOptional(),
  }),
  z.object({
    version: z.literal(1),
    mode: z.literal('Layered'),
    config: z.string(),
    image: DigestedPullspecSchema,
    /** What the config's layer lies on. */
    baseImage: z.string().exactOptional(),
    /** The stock image, where a container engine made the base image of it. */
    stockImage: z.string().exactOptional(),
  }),
]);
/** What the node runs, as the daemon last brought it about. */
export type Current = z.infer<typeof Current>;
export type StandardCurrent = Extract<Current, { mode: 'Standard' }>;
export type LayeredCurrent = Extract<Current, { mode: 'Layered' }>;

/** @returns the image that a node which runs this has booted, or boots next; undefined where none is known. */
export function imageOf(current: Current): string | undefined {
  return current.mode === 'Layered' ? current.image : current.baseImage;
}

/** @returns the packages that Shale had the node install and remove. */
export function packagesOf(current: Current | undefined): PackageSet {
  return (current?.mode === 'Standard' ? current.packages : undefined) ?? noPackages;
}

/** There is none on a node that Shale has never configured, or that runs nothing of Shale's. */
export const {
  read: readCurrent,
  write: writeCurrent,
  remove: forgetCurrent,
} = stateRecord('current.json', Current);

/** @returns what an image of Shale's says of the images below it. */
export function basesOf(labels: Readonly<Record<string, string>>): {
  baseImage?: string;
  stockImage?: string;
} {
  const { [imageLabels.baseImage]: baseImage, [imageLabels.stockImage]: stockImage } = labels;
  return {
    ...present({ baseImage, stockImage }),
  };
}

/** The target can't be prepared as things are: what has to change is in the message. It is tried again. */
export class PrepareRefused extends Error {
  override readonly name = 'PrepareRefused';
}

/**
 * @returns what a rendered config means on the node's disk.
 * @throws PrepareRefused when it can't be read; the message names each problem, and no contents.
 */
export function nodeConfigOf(rendered: CarriedConfig): NodeConfig {
  const parsed = parseNodeConfig(rendered);
  if (parsed.ok) return parsed.config;
  throw new PrepareRefused(`${rendered.metadata.name}: ${parsed.problems.map(formatProblem).join('; ')}`);
}

/**
 * @returns what standard mode has written to the node's disk: nothing, unless the node is in standard mode.
 * @throws PrepareRefused
 */
export function writtenConfigOf(current: Current | undefined): NodeConfig {
  return current?.mode === 'Standard' ? nodeConfigOf(current.rendered) : emptyNodeConfig;
}
