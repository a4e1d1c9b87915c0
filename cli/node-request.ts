import { type MachineConfigNode, MachineConfigNodes } from '../api/machine-config-node.ts';
import type { Kind, KubernetesObject } from '../api/object.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import { UsageError } from './command-line/exit-codes.ts';

/** Requests that people make of nodes and pools, each as an annotation (api/annotation-requests.ts). */

/** @throws {CommandError} when no pool selects such a node. */
export async function managedNode(
  client: ApiClient,
  name: string,
  signal: AbortSignal,
): Promise<MachineConfigNode> {
  const node = await client.find(MachineConfigNodes, name, { signal });
  if (node !== undefined) return node;
  throw new UsageError(`MachineConfigNode ${name} does not exist: no pool selects such a node`);
}

/**
 * Requests something by annotations of an object.
 *
 * @param values null removes one.
 * @throws {ApiError} a conflict when the object has changed since it was read: what the request is about may be over.
 */
export async function annotate<T extends KubernetesObject>(
  client: ApiClient,
  kind: Kind<T>,
  { metadata: { name, resourceVersion } }: T,
  values: Readonly<Record<string, string | null>>,
  signal: AbortSignal,
): Promise<void> {
  const body = { metadata: { resourceVersion, annotations: values } };
  await client.patch(kind, name, { type: 'merge', body }, { signal });
}
