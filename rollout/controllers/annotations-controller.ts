import { Nodes } from '../../api/kubernetes.ts';
import { type ApiClient, isNotFound } from '../../cluster/api-client.ts';
import { done, type Result } from '../../cluster/controller.ts';
import { annotationChanges, awaitsUncordon } from '../act/node-annotations.ts';
import type { Caches } from '../caches.ts';
import type { NodeLeases } from '../node-leases.ts';

export interface AnnotationsControllerParts {
  readonly client: ApiClient;
  readonly caches: Pick<Caches, 'nodes' | 'machineConfigNodes'>;
  readonly leases: Pick<NodeLeases, 'holding'>;
}

/** Mirrors MachineConfigNodes to MCO's annotations of their Nodes. */
export class AnnotationsController {
  readonly #parts: AnnotationsControllerParts;

  constructor(parts: AnnotationsControllerParts) {
    this.#parts = parts;
  }

  /** @param name of both objects. @throws ApiError */
  async reconcile(name: string, signal: AbortSignal): Promise<Result> {
    const { client, caches, leases } = this.#parts;
    const node = caches.nodes.get(name);
    const machineConfigNode = caches.machineConfigNodes.get(name);
    if (node === undefined || machineConfigNode === undefined) return done;
    if (awaitsUncordon(node, machineConfigNode, leases.holding(name))) return done;
    const annotations = annotationChanges(node, machineConfigNode);
    if (annotations === undefined) return done;
    try {
      const body = { metadata: { annotations } };
      caches.nodes.remember(await client.patch(Nodes, name, { type: 'merge', body }, { signal }));
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
    return done;
  }
}
