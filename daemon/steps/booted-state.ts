import { imageLabels } from '../../api/names.ts';
import type { NodePorts } from '../host/node-ports.ts';
import type { Deployment } from '../os/backend.ts';
import { type Current, forgetCurrent, writeCurrent } from '../records/current.ts';

/**
 * What a node runs after a boot that brought something else than the record says: an admin's rollback, or a deployment
 * that could not be booted.
 *
 * @param current the record.
 * @returns undefined when the booted image says nothing of Shale: then the node is a fresh one.
 */
export function currentAfterBoot(
  current: Current | undefined,
  { image, labels }: Deployment,
): Current | undefined {
  if (current?.mode === 'Standard') {
    return image === undefined || image === current.baseImage ? current : { ...current, baseImage: image };
  }
  if (image === undefined || image === current?.image) return current;
  const config = labels[imageLabels.renderedConfig];
  if (config === undefined) return undefined;
  return { version: 1, mode: 'Layered', config, image, ...basesOf(labels) };
}

/** @returns what an image of Shale's says of the images below it. */
export function basesOf(labels: Deployment['labels']): { baseImage?: string; stockImage?: string } {
  const { [imageLabels.baseImage]: baseImage, [imageLabels.stockImage]: stockImage } = labels;
  return {
    ...(baseImage === undefined ? {} : { baseImage }),
    ...(stockImage === undefined ? {} : { stockImage }),
  };
}

/** Makes the record say what the node has booted, after a boot that nobody here asked for. */
export async function correctCurrent(
  { host, backend }: NodePorts,
  current: Current | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { booted } = await backend.status(signal);
  const corrected = currentAfterBoot(current, booted);
  if (corrected === current) return;
  if (corrected === undefined) await forgetCurrent(host.root);
  else await writeCurrent(host.root, corrected);
}
