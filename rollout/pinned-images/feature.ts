import { PinnedImageSets } from '../../api/pinned-image-set.ts';
import { createInformer } from '../../cluster/informer.ts';
import type { NodeFeature } from '../node-feature.ts';
import { PinnedImagesController, type PinnedImagesControllerParts } from './controller.ts';
import { routePinnedImages } from './events.ts';
import { pinnedImagesPart } from './pool-counts.ts';

/** @param parts with caches that are not started yet. */
export function pinnedImagesFeature(parts: Omit<PinnedImagesControllerParts, 'sets'>): NodeFeature {
  const { client, caches, log } = parts;
  const sets = createInformer(client, PinnedImageSets, { log });
  const controller = new PinnedImagesController({ ...parts, sets });
  return {
    name: 'pinnedImages',
    doing: 'telling it the images to keep',
    watches: [sets],
    route: (queue) => routePinnedImages({ ...caches, sets }, queue),
    reconcile: (node, signal) => controller.reconcile(node, signal),
    statusPart: pinnedImagesPart(caches.machineConfigNodes),
  };
}
