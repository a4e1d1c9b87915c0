import type { Logger } from 'pino';
import { type Node, Nodes } from '../../api/kubernetes.ts';
import { annotations } from '../../api/names.ts';
import { isStartupTaint } from '../../api/startup-taint.ts';
import { type ApiClient, isNotFound } from '../../cluster/api-client.ts';
import type { EventRecorder } from '../../cluster/events.ts';
import type { Caches } from '../caches.ts';

export interface AdmitParts {
  readonly client: ApiClient;
  readonly caches: Pick<Caches, 'nodes'>;
  readonly events: EventRecorder;
  readonly log: Logger;
}

/**
 * Removes a node's startup taints, and records in the same request that pods may be there from now on.
 *
 * @param why what the node runs, for its event.
 * @throws ApiError, a conflict too: then the node is observed again.
 */
export async function admitNode(
  { client, caches, events, log }: AdmitParts,
  node: Node,
  why: string,
  signal: AbortSignal,
): Promise<void> {
  const { name, resourceVersion } = node.metadata;
  const kept = (node.spec?.taints ?? []).filter((taint) => !isStartupTaint(taint));
  // A merge patch replaces a list as a whole: the resourceVersion makes sure that no other taint gets lost.
  const body = {
    metadata: { resourceVersion, annotations: { [annotations.inService]: 'true' } },
    spec: { taints: kept.length === 0 ? null : kept },
  };
  try {
    caches.nodes.remember(await client.patch(Nodes, name, { type: 'merge', body }, { signal }));
  } catch (error) {
    if (isNotFound(error)) return;
    throw error;
  }
  log.info({ node: name }, 'removed the startup taint');
  events.normal(node, 'Configured', `Removed the startup taint: the node runs ${why}`);
}
