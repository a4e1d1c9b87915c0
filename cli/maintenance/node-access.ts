import { InvalidArgumentError } from 'commander';
import { z } from 'zod';
import { type Lease, Leases, type Node, Nodes } from '../../api/kubernetes.ts';
import { type MachineConfigNode, MachineConfigNodes } from '../../api/machine-config-node.ts';
import { type MachineConfigPool, MachineConfigPools } from '../../api/machine-config-pool.ts';
import { annotations, POWERED_OFF_LEASE_HOLDER } from '../../api/names.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { type EndOfLease, leaseEnd } from '../../cluster/lease.ts';
import { retryOnConflict } from '../../cluster/update-object.ts';
import { leaseNameOf } from '../../rollout/node-leases.ts';
import { UsageError } from '../command-line/exit-codes.ts';
import { parseDurationFlag } from '../command-line/quantities.ts';

/** What decides whether a maintenance of a node may start. */
export interface MaintenanceObservation {
  readonly node: Node;
  readonly lease: Lease | undefined;
  /** Undefined when no pool selects the node. */
  readonly machineConfigNode: MachineConfigNode | undefined;
  readonly pool: MachineConfigPool | undefined;
}

/** A node and the client to access it. */
export interface NodeAccess {
  readonly client: ApiClient;
  readonly node: string;
  readonly leaseNamespace: string;
  readonly signal: AbortSignal;
}

/** @throws {CommandError} when the node does not exist. */
export async function observeNode(access: NodeAccess): Promise<MaintenanceObservation> {
  const { client, signal } = access;
  const [node, lease, machineConfigNode] = await Promise.all([
    getNode(access),
    readLease(access),
    client.find(MachineConfigNodes, access.node, { signal }),
  ]);
  const pool =
    machineConfigNode === undefined
      ? undefined
      : await client.find(MachineConfigPools, machineConfigNode.spec.pool.name, { signal });
  return { node, lease, machineConfigNode, pool };
}

/** @throws {CommandError} when the node does not exist. */
export async function getNode({ client, node, signal }: NodeAccess): Promise<Node> {
  const object = await client.find(Nodes, node, { signal });
  if (object === undefined) throw new UsageError(`no node is named ${node}`);
  return object;
}

export async function readLease(access: NodeAccess): Promise<Lease | undefined> {
  const { client, node, leaseNamespace, signal } = access;
  return client.find(Leases, leaseNameOf(node), { namespace: leaseNamespace, signal });
}

/**
 * Patches a Node, depending on its current state.
 *
 * @param change returns the merge patch (RFC 7386) for the node as it was just read.
 * @throws {ApiError} also a conflict, after several attempts.
 */
export async function patchCurrentNode(access: NodeAccess, change: (node: Node) => object): Promise<Node> {
  const { client, signal } = access;
  return retryOnConflict(async () => {
    const node = await getNode(access);
    const { metadata = {}, ...rest } = change(node) as { metadata?: object };
    const body = { ...rest, metadata: { ...metadata, resourceVersion: node.metadata.resourceVersion } };
    return client.patch(Nodes, access.node, { type: 'merge', body }, { signal });
  });
}

const Flag = z.object({
  reason: z.string().default(''),
  /** The person who works on the node. */
  by: z.string().default(''),
  /** RFC 3339; absent: until the annotation is removed. */
  until: z.string().optional(),
  /** Written by `shale maintenance start` when it cordons the node: whether it was schedulable before. */
  uncordon: z.boolean().optional(),
  /** Written by `shale maintenance start --power-off`: the end takes the annotation of a powered-off machine away. */
  poweredOff: z.literal(true).optional(),
});
/** The annotation that flags a Node for maintenance. Rollouts skip the node (rollout/gates/planned-maintenance.ts). */
type MaintenanceFlag = z.infer<typeof Flag>;

const HOLDER_PREFIX = 'shale-maintenance/';

/** @returns the identity of the holder of a node's lease during a maintenance by this person. */
export function maintenanceHolder(by: string): string {
  return `${HOLDER_PREFIX}${by}`;
}

/** @returns whether a maintenance holds the lease, no matter who started it. */
export function isMaintenanceHolder(holder: string): boolean {
  return holder.startsWith(HOLDER_PREFIX);
}

/**
 * When another's lease is over for who works on the machine: one that the operator holds for a machine that is switched
 * off gives way to them at once. It has the lease again afterwards, unless the machine's mark is gone by then.
 */
export const endOfOthers: EndOfLease = (lease) =>
  lease.spec?.holderIdentity === POWERED_OFF_LEASE_HOLDER ? Number.NEGATIVE_INFINITY : leaseEnd(lease);

/** @returns the flag of a Node; undefined without one. A flag that can't be parsed still counts, without a reason. */
export function flagOf({ metadata }: Node): MaintenanceFlag | undefined {
  const text = metadata.annotations?.[annotations.plannedMaintenance];
  if (text === undefined) return undefined;
  try {
    return Flag.parse(JSON.parse(text));
  } catch {
    return { reason: '', by: '' };
  }
}

/** @returns the annotation's value. */
export function flagText(flag: MaintenanceFlag): string {
  return JSON.stringify(flag);
}

/**
 * Parses the end of a maintenance: a duration from now (`4h`) or a time (RFC 3339).
 *
 * @param now ms since the epoch.
 * @returns ms since the epoch, after now. @throws InvalidArgumentError.
 */
export function parseUntil(text: string, now: number): number {
  const time = /^\d{4}-\d{2}-\d{2}T/.test(text) ? Date.parse(text) : now + parseDurationFlag(text);
  if (Number.isNaN(time))
    throw new InvalidArgumentError('Expected a time such as 2026-12-24T18:00:00Z, or a duration such as 4h');
  if (time <= now) throw new InvalidArgumentError('Expected a time in the future');
  return time;
}
