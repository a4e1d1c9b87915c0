import type { Logger } from 'pino';
import { capiNames } from '../../api/cluster-api.ts';
import { formatMachineOwner, isSameOwner, type MachineOwner } from '../../api/machine-owner.ts';
import { type KubernetesObject, toSeconds } from '../../api/object.ts';
import type { EventRecorder } from '../../cluster/events.ts';
import { type CapiCluster, isBeingUpdated, isPaused, type Machine } from '../contract/cluster-api-kinds.ts';
import type { ClusterReference } from '../contract/requests.ts';
import type { MachineSettings } from '../contract/settings.ts';
import { type OwnedMachine, withoutConfig } from '../decide/first-config.ts';
import { decideUpkeep, type FollowedOwner, type Upkeep } from '../decide/follow-owner.ts';
import { machinePartsOf } from '../mapping/parts-of.ts';
import { isHeldOff, type ManagementCluster } from './management.ts';
import type { WorkloadCluster } from './workload.ts';

export interface KeepUpOptions {
  readonly management: ManagementCluster;
  /** In the management cluster. */
  readonly events: EventRecorder;
  readonly log: Logger;
  /** Why an owner's pool did not follow at the last pass, so that each reason is reported once. */
  readonly reported: Map<string, string>;
  readonly now: () => Date;
}

/** One Cluster, and where its owners' templates are to be followed. */
export interface KeptCluster {
  readonly cluster: CapiCluster;
  /** Of the Cluster, as they were a moment ago. */
  readonly machines: readonly Machine[];
  readonly workload: WorkloadCluster;
  readonly settings: MachineSettings;
}

/**
 * Makes one Cluster's workload cluster what its owners' templates say, hands new machines over for their first config,
 * and takes back what was handed over and is no longer being updated. Everything is read again, so that it makes no
 * difference which replica does it, or both.
 *
 * @throws {NotKnownNow} when one of the clusters can't be read or written.
 */
export async function keepUp(options: KeepUpOptions, kept: KeptCluster, signal: AbortSignal): Promise<void> {
  const { cluster, workload, settings } = kept;
  const named = await workload.owners(signal);
  // Most clusters have no pool that Cluster API drives; for the others all is read.
  if (named.length === 0 && !kept.machines.some(concernsShale)) return;
  const owners = await followedOwners(options, kept, named, signal);
  const state = await workload.read(signal);
  // After the nodes: of a node that was handed over since the Machines were read, none seems to be updated.
  const machines = await options.management.machinesOf(referenceOf(cluster), signal);
  const unconfigured = await ownedMachines(options, withoutConfig(machines, state), signal);
  const observed = { isPaused: isPaused(cluster), settings, owners, machines, unconfigured, workload: state };
  const upkeep = decideUpkeep(observed, holdsOff);
  for (const owner of named) await reportRefusal(options, owner, whyRefused(upkeep, owner), signal);
  for (const write of upkeep.content) await workload.write(write, signal);
  for (const node of upkeep.takenBack) await workload.takeBack(node, signal);
  for (const { machine, node, update } of upkeep.handedOver) {
    await options.management.holdOffRemediation(machine, signal);
    await workload.handOver(node, { ...update, at: toSeconds(options.now()) }, signal);
    options.log.info(
      { ...update, node: node.metadata.name },
      'a machine is handed over for its first config',
    );
  }
  for (const machine of upkeep.allowed) await options.management.allowRemediation(machine, signal);
}

async function ownedMachines(
  { management }: KeepUpOptions,
  machines: readonly Machine[],
  signal: AbortSignal,
): Promise<readonly OwnedMachine[]> {
  const owned = machines.map(async (machine) => ({
    machine,
    owner: await management.ownerOf(machine, signal),
  }));
  return (await Promise.all(owned)).flatMap(({ machine, owner }) =>
    owner === undefined ? [] : [{ machine, owner }],
  );
}

function holdsOff({ metadata }: Machine): boolean {
  return isHeldOff(metadata.annotations);
}

/** A pool may have named an owner until a moment ago. */
function concernsShale(machine: Machine): boolean {
  return holdsOff(machine) || isBeingUpdated(machine);
}

/** @returns the owners that are this Cluster's; one of another Cluster has nothing to say in this workload cluster. */
async function followedOwners(
  options: KeepUpOptions,
  { cluster, settings }: KeptCluster,
  named: readonly MachineOwner[],
  signal: AbortSignal,
): Promise<readonly FollowedOwner[]> {
  const { namespace, name } = cluster.metadata;
  const followed: FollowedOwner[] = [];
  for (const owner of named) {
    const object = owner.namespace === namespace ? await options.management.owner(owner, signal) : undefined;
    const isOwn = object !== undefined && isOfCluster(object, name);
    const templates = isOwn ? await options.management.templatesOf(owner, signal) : undefined;
    if (object === undefined || templates === undefined) {
      options.log.warn(
        { cluster: referenceOf(cluster), owner },
        'a pool names an owner that this Cluster does not have',
      );
      continue;
    }
    const current = machinePartsOf(templates.current, settings);
    followed.push({ owner, isPaused: isPaused(cluster, object), current });
  }
  return followed;
}

/** Only a MachineDeployment names its Cluster in its spec; Cluster API gives both the label. */
function isOfCluster(object: KubernetesObject & { readonly spec?: { clusterName?: string } }, name: string) {
  return object.spec?.clusterName === name || object.metadata.labels?.[capiNames.clusterLabel] === name;
}

function whyRefused({ refused }: Upkeep, owner: MachineOwner): string | undefined {
  return refused.find((each) => isSameOwner(each.owner, owner))?.why;
}

/** @param why undefined: its pool follows. */
async function reportRefusal(
  { management, events, log, reported }: KeepUpOptions,
  owner: MachineOwner,
  why: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  const key = formatMachineOwner(owner);
  if (reported.get(key) === why) return;
  if (why === undefined) {
    reported.delete(key);
    return;
  }
  log.warn({ owner, why }, 'the pool of an owner does not follow its template');
  const object = await management.owner(owner, signal);
  if (object !== undefined) events.warning(object, 'PoolNotDriven', why);
  reported.set(key, why);
}

/** @returns where a Cluster is. */
export function referenceOf({ metadata: { namespace = '', name } }: CapiCluster): ClusterReference {
  return { namespace, name };
}
