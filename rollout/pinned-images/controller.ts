import type { Logger } from 'pino';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import type { PinnedImageSet } from '../../api/pinned-image-set.ts';
import { type ApiClient, isNotFound } from '../../cluster/api-client.ts';
import { done, type Result, requeueAfter } from '../../cluster/controller.ts';
import type { Informer } from '../../cluster/informer.ts';
import { canonicalJson } from '../../machineconfig/canonical-json.ts';
import { pinnedImagesRequest } from '../../machineconfig/pinned-image-sets.ts';
import type { Caches } from '../caches.ts';
import { diskHolderOfNode, HELD_RETRY, type HolderParts } from '../controllers/observe-holders.ts';

export interface PinnedImagesControllerParts extends HolderParts {
  readonly client: ApiClient;
  readonly caches: Pick<Caches, 'pools' | 'nodes' | 'machineConfigNodes'>;
  readonly sets: Pick<Informer<PinnedImageSet>, 'list' | 'onChange'>;
  readonly log: Logger;
}

/**
 * Writes to MachineConfigNodes which PinnedImageSets the node has to pull and keep. They are no part of an update: they
 * need no grant, and reach the nodes of paused pools too. A node that somebody else holds pulls nothing and lets
 * nothing go until it is given back.
 */
export class PinnedImagesController {
  readonly #parts: PinnedImagesControllerParts;

  constructor(parts: PinnedImagesControllerParts) {
    this.#parts = parts;
  }

  /** @param node name of the MachineConfigNode. @throws ApiError */
  async reconcile(node: string, signal: AbortSignal): Promise<Result> {
    const { client, caches, sets, log } = this.#parts;
    const machineConfigNode = caches.machineConfigNodes.get(node);
    const pool = caches.pools.get(machineConfigNode?.spec.pool.name ?? '');
    if (machineConfigNode === undefined || pool === undefined) return done;
    const version = caches.nodes.get(node)?.status?.nodeInfo?.containerRuntimeVersion;
    const desired = pinnedImagesRequest(pool, sets.list(), version);
    const current = machineConfigNode.spec.pinnedImages;
    if (canonicalJson(current ?? null) === canonicalJson(desired ?? null)) return done;
    if ((await diskHolderOfNode(this.#parts, machineConfigNode, signal)) !== undefined)
      return requeueAfter(HELD_RETRY);
    // Of a merge patch null removes a field (RFC 7386).
    const pinnedImages = desired === undefined ? null : { containerRuntime: null, problem: null, ...desired };
    try {
      const body = { spec: { pinnedImages } };
      const patched = await client.patch(MachineConfigNodes, node, { type: 'merge', body }, { signal });
      caches.machineConfigNodes.remember(patched);
      log.info({ node, pinnedImages: desired }, 'node has other images to pull and keep');
    } catch (error) {
      // Deleted together with its node.
      if (!isNotFound(error)) throw error;
    }
    return done;
  }
}
