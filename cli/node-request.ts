import { type MachineConfigNode, MachineConfigNodes } from '../api/machine-config-node.ts';
import type { ApiClient } from '../cluster/api-client.ts';
import { UsageError } from './command-line/exit-codes.ts';

/** Requests that people make of a node, each as an annotation of its MachineConfigNode (api/annotation-requests.ts). */

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
 * @throws {ApiError} a conflict when the object has changed since it was read: what the request is about may be over.
 */
export async function writeRequest(
  client: ApiClient,
  { metadata: { name, resourceVersion } }: MachineConfigNode,
  annotation: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<void> {
  const body = { metadata: { resourceVersion, annotations: annotation } };
  await client.patch(MachineConfigNodes, name, { type: 'merge', body }, { signal });
}
