import type { ClusterApiUpdate } from '../../api/annotation-requests.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { MachineOwner } from '../../api/machine-owner.ts';
import { isReported } from '../../api/object.ts';
import { handoverOf } from '../../rollout/pools/handover.ts';
import { startupOf } from '../../rollout/pools/new-node.ts';
import { isBeingUpdated, type Machine } from '../contract/cluster-api-kinds.ts';
import { drivenPool } from './driven-pool.ts';
import { type NodeProgress, nodeProgress } from './node-progress.ts';
import { poolsOf } from './wanted-content.ts';
import type { WorkloadState } from './workload-state.ts';

/*
 * A new machine's first config. Cluster API creates a Machine as it has to be, and has no hook for that: it never
 * hands one over that is new. A node with the startup taint needs nobody for its first config (rollout/gates/
 * driven-by.ts); for every other one the extension's loop does what UpdateMachine does for an update.
 */

/** A Machine and the owner that its object in the management cluster has. */
export interface OwnedMachine {
  readonly machine: Machine;
  readonly owner: MachineOwner;
}

/** A machine that is handed over for its first config. */
export interface FirstConfig {
  readonly machine: Machine;
  readonly node: MachineConfigNode;
  readonly update: Omit<ClusterApiUpdate, 'at'>;
}

/** @returns Machines whose node may need to be handed over for its first config: their owners are to be read. */
export function withoutConfig(machines: readonly Machine[], workload: WorkloadState): readonly Machine[] {
  return machines.filter((machine) => {
    const node = nodeOf(machine, workload);
    return (
      node !== undefined &&
      isWithoutConfig(node) &&
      !isBeingUpdated(machine) &&
      needsHandover(machine, workload)
    );
  });
}

/**
 * One machine of a pool after the other, and none while Cluster API updates another one of it: these nodes may have
 * pods, and Cluster API doesn't know that they are disrupted. On the day on which a pool gets its owner that may be all
 * of them.
 *
 * @param owned of {@link withoutConfig}, without those that are paused.
 * @returns the machines that are to be handed over, in the order of their names.
 */
export function firstConfigs(
  owned: readonly OwnedMachine[],
  workload: WorkloadState,
): readonly FirstConfig[] {
  const busy = new Set(
    workload.machineConfigNodes
      .filter((node) => handoverOf(node) !== undefined)
      .map(({ spec }) => spec.pool.name),
  );
  const sorted = owned.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  return sorted.flatMap(({ machine, owner }): readonly FirstConfig[] => {
    const node = nodeOf(machine, workload);
    const driven = drivenPool(owner, poolsOf(workload));
    if (node === undefined || driven.kind === 'none' || machine.metadata.deletionTimestamp !== undefined)
      return [];
    const { name } = driven.pool.metadata;
    if (node.spec.pool.name !== name || busy.has(name) || !isAwaited(node, driven.pool)) return [];
    busy.add(name);
    const { metadata } = machine;
    const reference = { namespace: metadata.namespace ?? '', name: metadata.name };
    return [{ machine, node, update: { owner, machine: reference } }];
  });
}

/**
 * @returns whether a node that was handed over for its first config is still on its way to it. It is until it has one
 *   and its grant is gone; not once it has failed, because a MachineHealthCheck may then replace its machine.
 */
export function isTakingFirst(node: MachineConfigNode, workload: WorkloadState): boolean {
  const { grant, pool: own } = node.spec;
  if (grant !== undefined)
    return isWithoutConfig(node) || node.status?.configVersion?.current === grant.config;
  const pool = poolsOf(workload).find(({ metadata }) => metadata.name === own.name);
  return pool !== undefined && isWithoutConfig(node) && !isOver(progressOf(node, pool));
}

/** The node has the target of its pool as its own: for an earlier one it would be disrupted twice. */
function isAwaited(node: MachineConfigNode, pool: MachineConfigPool): boolean {
  const target = pool.spec.configuration?.name;
  return (
    target !== undefined &&
    node.spec.configVersion.desired === target &&
    progressOf(node, pool).kind === 'underWay'
  );
}

function progressOf(node: MachineConfigNode, pool: MachineConfigPool): NodeProgress {
  return nodeProgress(node, pool, pool.spec.configuration?.name ?? '');
}

function isOver(progress: NodeProgress): boolean {
  return progress.kind === 'failed' && progress.isOver === true;
}

/** A daemon that hasn't reported says nothing: the node may be in service, and its MachineConfigNode new. */
function isWithoutConfig({ status }: MachineConfigNode): boolean {
  if (status?.conditions === undefined || !isReported(status)) return false;
  return (status.configVersion?.current ?? '') === '';
}

/** @returns the node of a Machine, by what the management cluster says, never by what a node says of itself. */
export function nodeOf(
  { status }: Pick<Machine, 'status'>,
  { machineConfigNodes }: Pick<WorkloadState, 'machineConfigNodes'>,
): MachineConfigNode | undefined {
  const name = status?.nodeRef?.name;
  return name === undefined ? undefined : machineConfigNodes.find(({ metadata }) => metadata.name === name);
}

/** A node that has had the startup taint ever since it registered needs nobody's permission. */
function needsHandover({ spec: { providerID }, status }: Machine, { nodes }: WorkloadState): boolean {
  const node = nodes.find(({ metadata }) => metadata.name === status?.nodeRef?.name);
  const isSameMachine = providerID !== undefined && node?.spec?.providerID === providerID;
  return isSameMachine && startupOf(node)?.neverServed !== true;
}

function nameOf({ machine: { metadata } }: OwnedMachine): string {
  return `${metadata.namespace}/${metadata.name}`;
}
