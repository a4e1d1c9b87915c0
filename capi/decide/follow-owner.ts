import { capiNames } from '../../api/cluster-api.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import {
  isSameMachineReference,
  isSameOwner,
  type MachineOwner,
  type MachineReference,
} from '../../api/machine-owner.ts';
import { settingOf } from '../../api/pool-settings/read-settings.ts';
import { handoverOf } from '../../rollout/pools/handover.ts';
import { isBeingUpdated, type Machine } from '../contract/cluster-api-kinds.ts';
import type { MachineSettings } from '../contract/settings.ts';
import type { MachineParts } from '../mapping/machine-parts.ts';
import { renderable } from './carried-content.ts';
import { drivenPool } from './driven-pool.ts';
import { type FirstConfig, firstConfigs, isTakingFirst, nodeOf, type OwnedMachine } from './first-config.ts';
import { alreadyOwned } from './owned-now.ts';
import { handedOver } from './update-machine.ts';
import { existingConfig, type PoolWrite, poolsOf, poolWrites, wantedContent } from './wanted-content.ts';
import type { WorkloadState } from './workload-state.ts';

/** An owner of the management cluster that a pool names. */
export interface FollowedOwner {
  readonly owner: MachineOwner;
  readonly isPaused: boolean;
  /** Of its current template. */
  readonly current: MachineParts;
}

/** What is known of a Cluster and its workload cluster. */
export interface ClusterObservation {
  readonly isPaused: boolean;
  readonly settings: MachineSettings;
  /** Those that a pool names and that are this Cluster's. */
  readonly owners: readonly FollowedOwner[];
  /** Of the Cluster. */
  readonly machines: readonly Machine[];
  /** Those of them whose node never had a config of Shale (withoutConfig of first-config.ts). */
  readonly unconfigured: readonly OwnedMachine[];
  readonly workload: WorkloadState;
}

/** What keeps a workload cluster and its Machines as their owners want them while nobody calls a hook. */
export interface Upkeep {
  readonly content: readonly PoolWrite[];
  /** Nodes from which the annotation is removed. */
  readonly takenBack: readonly MachineConfigNode[];
  /** Machines that are handed over for their first config: MachineHealthChecks are held off them first. */
  readonly handedOver: readonly FirstConfig[];
  /** Machines that MachineHealthChecks may remediate again. */
  readonly allowed: readonly Machine[];
  /** Owners for whose pool nothing is written, and why. */
  readonly refused: readonly { readonly owner: MachineOwner; readonly why: string }[];
}

/**
 * The parts that Shale has written follow the owner's template at once, so that new machines and their pool agree; the
 * other nodes wait until their machines are handed over. What was handed over and is no longer being updated is taken
 * back. Of a paused Cluster nothing is written, and what has no grant is taken back.
 *
 * @param isHeldOff whether the extension holds MachineHealthChecks off a Machine.
 */
export function decideUpkeep(observed: ClusterObservation, isHeldOff: (machine: Machine) => boolean): Upkeep {
  const followed = observed.owners.map((each) => followOwner(observed, each));
  const takenBack = observed.workload.machineConfigNodes.filter((node) => isStale(node, observed));
  const handingOver = firstConfigs(
    observed.unconfigured.filter((each) => !isPausedWithOwner(each, observed)),
    observed.workload,
  );
  const started = new Set(handingOver.map(({ machine }) => machine));
  return {
    content: followed.flatMap(({ writes }) => writes),
    takenBack,
    handedOver: handingOver,
    allowed: observed.machines.filter(
      (machine) => isHeldOff(machine) && !started.has(machine) && isAllowed(machine, observed),
    ),
    refused: followed.flatMap(({ refused }) => refused ?? []),
  };
}

interface Followed {
  readonly writes: readonly PoolWrite[];
  readonly refused?: { readonly owner: MachineOwner; readonly why: string };
}

function followOwner(
  { isPaused, settings, workload }: ClusterObservation,
  { owner, current, isPaused: isOwnerPaused }: FollowedOwner,
): Followed {
  if (isPaused || isOwnerPaused) return { writes: [] };
  const refuse = (why: string): Followed => ({ writes: [], refused: { owner, why } });
  const driven = drivenPool(owner, poolsOf(workload));
  if (driven.kind === 'none') return refuse(driven.why);
  const { pool } = driven;
  const owned = alreadyOwned(existingConfig(workload, pool), settings);
  if (owned.kind === 'unknown') return refuse(owned.why);
  const wanted = wantedContent({ pool, owner, workload }, current, owned.parts);
  if (wanted.kind === 'impossible') return refuse(wanted.why);
  const writes = poolWrites(workload, pool, wanted);
  const after = writes.length === 0 ? undefined : renderable(workload, pool, wanted, writes);
  return after?.kind === 'impossible' ? refuse(after.why) : { writes };
}

/** @returns whether a node has an annotation that isn't in effect any more. */
function isStale(node: MachineConfigNode, observed: ClusterObservation): boolean {
  const handover = handoverOf(node);
  if (handover === undefined) return false;
  // Nobody can act on it, and nobody else would remove it.
  if (handover.kind === 'unreadable') return true;
  const { update } = handover;
  const machine = observed.machines.find((each) => isNamed(each, update.machine));
  const isOfNode = machine?.status?.nodeRef?.name === node.metadata.name;
  if (machine === undefined || !isOfNode || !isShalesNow(machine, node, observed)) return true;
  if (!isDrivenBy(node, update.owner, poolsOf(observed.workload))) return true;
  return isPausedFor(machine, observed) && node.spec.grant === undefined;
}

function isDrivenBy(
  { spec }: MachineConfigNode,
  owner: MachineOwner,
  pools: readonly MachineConfigPool[],
): boolean {
  const pool = pools.find(({ metadata }) => metadata.name === spec.pool.name);
  const driver = pool && settingOf(pool, 'drivenBy');
  return driver !== undefined && isSameOwner(driver, owner);
}

/** While a node has its grant, Shale works on it: it must not be taken for one that is broken. */
function isAllowed(machine: Machine, observed: ClusterObservation): boolean {
  const node = nodeOf(machine, observed.workload);
  const isGranted = node?.spec.grant !== undefined && handedOver(node) !== undefined;
  if (isGranted && machine.metadata.deletionTimestamp === undefined) return false;
  return !isShalesNow(machine, node, observed) || isPausedFor(machine, observed);
}

/** @returns whether a machine is being updated, or takes its first config. */
function isShalesNow(
  machine: Machine,
  node: MachineConfigNode | undefined,
  { workload }: ClusterObservation,
): boolean {
  if (isBeingUpdated(machine)) return true;
  const update = node && handedOver(node);
  if (node === undefined || update === undefined || machine.metadata.deletionTimestamp !== undefined)
    return false;
  return isNamed(machine, update.machine) && isTakingFirst(node, workload);
}

function isPausedWithOwner({ machine, owner }: OwnedMachine, observed: ClusterObservation): boolean {
  const followed = observed.owners.find((each) => isSameOwner(each.owner, owner));
  return followed === undefined || followed.isPaused || isPausedFor(machine, observed);
}

function isPausedFor({ metadata }: Machine, { isPaused }: ClusterObservation): boolean {
  return isPaused || metadata.annotations?.[capiNames.paused] !== undefined;
}

function isNamed({ metadata: { namespace = '', name } }: Machine, reference: MachineReference): boolean {
  return isSameMachineReference({ namespace, name }, reference);
}
