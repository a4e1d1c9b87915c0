import { type Lease, Leases, type Node, Nodes } from '../../api/kubernetes.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { type ApiClient, isConflict } from '../../cluster/api-client.ts';
import { leaseNameOf } from '../../rollout/node-leases.ts';
import { CommandError, exitCodes } from '../command-line/exit-codes.ts';
import type { MaintenanceObservation } from './decide-start.ts';

/** One node, and how it is reached. */
export interface NodeAccess {
  readonly client: ApiClient;
  readonly node: string;
  readonly leaseNamespace: string;
  readonly signal: AbortSignal;
}

/** Writes of the kubelet come in between; more than a few in a row are something else. */
const ATTEMPTS = 5;

/** @throws CommandError for a node that is not there. */
export async function observeNode(access: NodeAccess): Promise<MaintenanceObservation> {
  const { client, signal } = access;
  const [node, lease, machineConfigNode] = await Promise.all([
    readNode(access),
    readLease(access),
    client.find(MachineConfigNodes, access.node, { signal }),
  ]);
  const pool =
    machineConfigNode === undefined
      ? undefined
      : await client.find(MachineConfigPools, machineConfigNode.spec.pool.name, { signal });
  return { node, lease, machineConfigNode, pool };
}

/** @throws CommandError for a node that is not there. */
export async function readNode({ client, node, signal }: NodeAccess): Promise<Node> {
  const found = await client.find(Nodes, node, { signal });
  if (found === undefined) throw new CommandError(`no node ${node}`, exitCodes.usage);
  return found;
}

export async function readLease({
  client,
  node,
  leaseNamespace,
  signal,
}: NodeAccess): Promise<Lease | undefined> {
  return client.find(Leases, leaseNameOf(node), { namespace: leaseNamespace, signal });
}

/**
 * Changes a Node by what it is at that moment.
 *
 * @param change makes the merge patch (RFC 7386) of the node as it was just read.
 * @throws ApiError, after several conflicts too.
 */
export async function patchNode(access: NodeAccess, change: (node: Node) => object): Promise<Node> {
  for (let attempt = 1; ; attempt += 1) {
    const node = await readNode(access);
    const { metadata = {}, ...rest } = change(node) as { metadata?: object };
    const body = { ...rest, metadata: { ...metadata, resourceVersion: node.metadata.resourceVersion } };
    try {
      return await access.client.patch(
        Nodes,
        access.node,
        { type: 'merge', body },
        { signal: access.signal },
      );
    } catch (error) {
      if (!isConflict(error) || attempt === ATTEMPTS) throw error;
    }
  }
}
