import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { formatMachineOwner, type MachineOwner } from '../../api/machine-owner.ts';
import { annotations } from '../../api/names.ts';
import { plural, shortList } from '../../api/plural.ts';
import { defaultPolicySettings } from '../../disruption/effective-policies.ts';
import type { Cost } from '../../predict/cost.ts';
import { formatObjectProblem, offlineCluster } from '../../predict/objects/offline-cluster.ts';
import { isHindered, type PoolAsk, type PoolPlan, predictPools } from '../../predict/plan.ts';
import type { CanUpdateAnswer, ObjectPatches } from '../contract/answers.ts';
import type { MachineSettings } from '../contract/settings.ts';
import { type MachineParts, type PartChanges, type PartName, partKey } from '../mapping/machine-parts.ts';
import { availabilityOf } from './availability.ts';
import { renderable } from './carried-content.ts';
import { drivenPool } from './driven-pool.ts';
import { alreadyOwned, type OlderParts, type OwnedNow, ownedNow } from './owned-now.ts';
import { existingConfig, objectsAfter, poolsOf, poolWrites, wantedContent } from './wanted-content.ts';
import type { WorkloadState } from './workload-state.ts';

/** A change that Cluster API asks about. */
export interface AskedChange {
  readonly owner: MachineOwner;
  readonly changes: PartChanges;
  /** What the machines are to be. */
  readonly desired: MachineParts;
  /** Of the other Machines of a control plane, which has no older templates. */
  readonly others: readonly OlderParts[];
  readonly patches: ObjectPatches;
  readonly settings: MachineSettings;
}

/** The answer that machines are replaced. */
type NewMachines = Extract<CanUpdateAnswer, { readonly kind: 'newMachines' }>;

/** How many reasons a message has; Cluster API's own message has all differences. */
const NAMED = 5;

/**
 * Answers from the objects of the management cluster alone.
 *
 * @returns undefined where the workload cluster decides.
 */
export function refusedAtOnce(owner: MachineOwner, changes: PartChanges): NewMachines | undefined {
  if (changes.refused.length > 0) {
    const reasons = changes.refused.map(({ field, why }) => `${field}: ${why}`);
    return newMachines(shortList(reasons, NAMED, '; '));
  }
  const isUpgrade = changes.taken.some(({ kind }) => kind === 'version');
  if (owner.kind !== 'KubeadmControlPlane' || !isUpgrade) return undefined;
  return newMachines("Machine spec.version: the version of a control plane is kubeadm's to upgrade");
}

/**
 * Decides whether Shale can make a change in place, and whether that affects pods. It predicts what the operator and
 * the node daemons will do, as `shale plan` does, and waits for no build. Call {@link refusedAtOnce} before.
 */
export function canUpdate(asked: AskedChange, workload: WorkloadState): CanUpdateAnswer {
  const { owner, changes, desired, settings } = asked;
  const driven = drivenPool(owner, poolsOf(workload));
  if (driven.kind === 'none') return newMachines(driven.why);
  const { pool } = driven;
  const existing = existingConfig(workload, pool);
  const why = closedBy(pool) ?? unreadable(existing, settings);
  if (why !== undefined) return { kind: 'failure', message: why };
  const owned = ownedThen(asked, existing);
  if (owned.kind === 'unknown') return newMachines(owned.why);
  const parts = new Set([...owned.parts, ...changes.taken.map(partKey)]);
  const wanted = wantedContent({ pool, owner, workload }, desired, parts);
  if (wanted.kind === 'impossible') return newMachines(wanted.why);
  if (isKubeletLeft(changes.taken, wanted.stream)) {
    return newMachines(
      'Machine spec.version: the image of the infrastructure machine brings the kubelet, and it stays the same',
    );
  }
  const writes = poolWrites(workload, pool, wanted);
  const possible = renderable(workload, pool, wanted, writes);
  if (possible.kind === 'impossible') return newMachines(possible.why);
  return predicted(asked, workload, pool.metadata.name, objectsAfter(workload.objects, writes));
}

/** A pool that its admin has stopped takes nothing now, and machines are not to be replaced for it. */
function closedBy({ metadata: { name, annotations: own }, spec }: MachineConfigPool): string | undefined {
  if (spec.paused === true) return `MachineConfigPool ${name} is paused`;
  return own?.[annotations.rollback] === undefined
    ? undefined
    : `MachineConfigPool ${name} is rolled back and stays there until its annotation ${annotations.rollback} is removed`;
}

/** A typing error must not replace a fleet. */
function unreadable(existing: MachineConfig | undefined, settings: MachineSettings): string | undefined {
  const owned = alreadyOwned(existing, settings);
  return owned.kind === 'unknown' ? owned.why : undefined;
}

/**
 * @returns the parts that UpdateMachine will find to be Shale's. It knows what a machine is to be, and not what it was:
 *   of a control plane, the other Machines say that.
 */
function ownedThen(
  { owner, changes, desired, others, settings }: AskedChange,
  existing: MachineConfig | undefined,
): OwnedNow {
  if (owner.kind === 'MachineDeployment') return alreadyOwned(existing, settings);
  const owned = ownedNow(existing, { current: desired, older: others }, desired, settings);
  if (owned.kind === 'unknown') return owned;
  const part = changes.taken.map(partKey).find((each) => !owned.parts.has(each));
  if (part === undefined) return owned;
  const why = `every other Machine of ${formatMachineOwner(owner)} has the new state, so nobody could tell during the update that ${part} has changed`;
  return { kind: 'unknown', why };
}

/** Where an image has been taken over, osImageURL overrides the streams. */
function isKubeletLeft(taken: readonly PartName[], stream: string | undefined): boolean {
  const kinds = new Set(taken.map(({ kind }) => kind));
  return kinds.has('version') && !kinds.has('image') && stream === undefined;
}

function predicted(
  { changes, patches, settings }: AskedChange,
  workload: WorkloadState,
  name: string,
  objects: WorkloadState['objects'],
): CanUpdateAnswer {
  const before = offlineCluster(workload.objects, { isLive: true });
  const prediction = predictPools({
    before,
    after: offlineCluster(objects, { isLive: true }),
    // The MachineConfiguration's status has the unit of the operator's flag.
    settings: defaultPolicySettings,
    nodeUser: settings.nodeUser,
    lookups: new Map(),
    trees: new Map(),
    cluster: workload,
  }).find(({ plan }) => plan.pool === name);
  if (prediction === undefined) return newMachines(`MachineConfigPool ${name} can not be read`);
  const { plan, nodes } = prediction;
  const why = obstacleIn(plan);
  if ('problems' in plan || why !== undefined) return newMachines(why ?? '');
  if (nodes.length === 0) return newMachines(`MachineConfigPool ${name} has no nodes`);
  const kept = nodes.flatMap(({ node, prediction: own }) =>
    own.kind === 'keeps' ? [`node ${node.metadata.name} keeps what it runs: ${own.why}`] : [],
  );
  if (kept.length > 0) return newMachines(shortList(kept, NAMED, '; '));
  const malformed = before.malformed.map(formatObjectProblem);
  const change = { taken: changes.taken, plan, prediction, builds: workload.builds, malformed };
  const availability = availabilityOf(change);
  const effect = availability.isAffected
    ? `pods may be affected, because ${availability.why}`
    : `no pod is affected: ${EFFECTS[availability.cost]}`;
  return {
    kind: 'inPlace',
    patches,
    affectsAvailability: availability.isAffected,
    message: `${formatParts(changes.taken)} in place on ${plural(nodes.length, 'node')} of MachineConfigPool ${name}; ${effect}`,
  };
}

/** What nodes do at a cost that no pod notices. */
const EFFECTS: Readonly<Record<Cost, string>> = {
  nothing: 'nodes have nothing to do',
  live: 'files change and nothing else happens',
  reload: 'services are reloaded',
  restart: 'services are restarted that a policy of the admin names',
  drain: 'nodes are drained',
  reboot: 'nodes reboot',
};

/** @returns why some nodes don't get where the change wants them; undefined where all do. */
function obstacleIn(plan: PoolPlan): string | undefined {
  if (!isHindered(plan)) return undefined;
  const why = 'problems' in plan ? plan.problems : hindrancesIn(plan);
  return `MachineConfigPool ${plan.pool}: ${shortList(why, NAMED, '; ')}`;
}

function hindrancesIn({ refusing = [], irreconcilable = [], image }: PoolAsk): readonly string[] {
  return [
    ...(image?.problems ?? []),
    ...refusing.map(({ nodes, why }) => `${shortList(nodes, NAMED)} refuse it: ${why.join(', ')}`),
    ...irreconcilable.map(
      ({ nodes, why }) => `${shortList(nodes, NAMED)} can not apply it while they run: ${why}`,
    ),
  ];
}

function formatParts(taken: readonly PartName[]): string {
  return taken.length === 0 ? 'no part changes' : shortList(taken.map(partKey), NAMED);
}

/** @param message a clause that says why. @returns the answer that machines are replaced. */
export function newMachines(message: string): NewMachines {
  return { kind: 'newMachines', message: `new machines are needed: ${message}` };
}
