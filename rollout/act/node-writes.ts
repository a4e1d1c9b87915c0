import type { Logger } from 'pino';
import { type Node, Nodes } from '../../api/kubernetes.ts';
import { type MachineConfigNode, MachineConfigNodes } from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import { isStartupTaint } from '../../api/startup-taint.ts';
import { type ApiClient, isNotFound } from '../../cluster/api-client.ts';
import type { EventRecorder } from '../../cluster/events.ts';
import { updateStatus } from '../../cluster/update-object.ts';
import type { Caches } from '../caches.ts';
import { withoutHooks } from '../pools/hooks.ts';
import { disruptionBlocked, disruptionUnblocked } from './disruption-annotations.ts';
import { annotationChanges } from './node-annotations.ts';

/** Writes on the two objects of a node. What was written is in the caches before the watch has it. */
export interface WriteParts {
  readonly client: ApiClient;
  readonly caches: Pick<Caches, 'nodes' | 'machineConfigNodes'>;
}

interface NodeObjects {
  readonly node: Node;
  readonly machineConfigNode: MachineConfigNode;
}

/**
 * Writes a cordon, or removes one, and with it what keeps others from deleting the node (disruption-annotations.ts).
 * Takes MCO's annotations along, which would be a request of their own (node-annotations.ts). The resourceVersion makes
 * the API server refuse a patch that was decided on an older object.
 *
 * @param change `cordonedByShale`: the mark of the cordon; null for none, which also ends what was requested of hooks.
 * @throws ApiError, a conflict too.
 */
export async function patchNode(
  { client, caches }: WriteParts,
  { node, machineConfigNode }: NodeObjects,
  { cordonedByShale, spec }: { readonly cordonedByShale: string | null; readonly spec: object },
  signal: AbortSignal,
): Promise<Node> {
  const { name, resourceVersion } = node.metadata;
  const changed = {
    ...annotationChanges(withMark(node, cordonedByShale), machineConfigNode),
    ...(cordonedByShale === null
      ? { ...withoutHooks(node), ...disruptionUnblocked(node) }
      : disruptionBlocked(node)),
    [annotations.cordonedByShale]: cordonedByShale,
  };
  const body = { metadata: { resourceVersion, annotations: changed }, spec };
  const patched = await client.patch(Nodes, name, { type: 'merge', body }, { signal });
  caches.nodes.remember(patched);
  return patched;
}

/** Lets others delete a node that stays cordoned. @throws ApiError, a conflict too. */
export async function unblockDisruption(
  { client, caches }: WriteParts,
  node: Node,
  signal: AbortSignal,
): Promise<void> {
  const changed = disruptionUnblocked(node);
  if (Object.keys(changed).length === 0) return;
  const { name, resourceVersion } = node.metadata;
  const body = { metadata: { resourceVersion, annotations: changed } };
  caches.nodes.remember(await client.patch(Nodes, name, { type: 'merge', body }, { signal }));
}

/** @throws ApiError, a conflict too. */
export async function patchMachineConfigNode(
  { client, caches }: WriteParts,
  object: MachineConfigNode,
  spec: object,
  signal: AbortSignal,
): Promise<void> {
  const { name, resourceVersion } = object.metadata;
  const body = { metadata: { resourceVersion }, spec };
  const patched = await client.patch(MachineConfigNodes, name, { type: 'merge', body }, { signal });
  caches.machineConfigNodes.remember(patched);
}

/** @returns the objects, with the MachineConfigNode as it is then. @throws ApiError */
export async function writeStatus<T extends NodeObjects>(
  { client, caches }: WriteParts,
  piece: T,
  compute: (status: MachineConfigNode['status']) => MachineConfigNode['status'],
  signal: AbortSignal,
): Promise<T> {
  const before = caches.machineConfigNodes.get(piece.node.metadata.name) ?? piece.machineConfigNode;
  const next = (object: MachineConfigNode) => compute(object.status);
  const written = await updateStatus(client, MachineConfigNodes, before, next, { signal });
  if (written !== before) caches.machineConfigNodes.remember(written);
  return { ...piece, machineConfigNode: written };
}

interface AdmitParts extends Pick<WriteParts, 'client'> {
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

/** @returns the Node as it is with the mark of a cordon, or without one. */
function withMark(node: Node, cordonedByShale: string | null): Node {
  const { [annotations.cordonedByShale]: _before, ...others } = node.metadata.annotations ?? {};
  const marked =
    cordonedByShale === null ? others : { ...others, [annotations.cordonedByShale]: cordonedByShale };
  return { ...node, metadata: { ...node.metadata, annotations: marked } };
}
