import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import { annotations } from '../../api/names.ts';
import { inOneLine } from '../../api/visible-text.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import { configVersions } from '../../machineconfig/config-versions.ts';
import { decideMachineOSConfigs } from '../../opt-in/machine-os-configs.ts';
import { readSwitch } from '../../opt-in/switch.ts';
import { NODES_IN_SEVERAL_POOLS } from '../../rollout/pools/pool-conditions.ts';
import { isAtTarget } from '../../rollout/pools/progress.ts';
import { buildsOfSameContent } from '../../rollout/pools/same-content.ts';
import { conditionOf, trueCondition } from '../../view/conditions.ts';
import { nodeView } from '../../view/node-view.ts';
import { nodesOfPool, type ObservedCluster } from '../../view/observed-cluster.ts';
import { adviceOn } from '../../view/retriable.ts';
import { formatSituation } from './node-text.ts';
import { failedIn, formatFailed, stuckBecause } from './stuck-pool.ts';

/** The target of a rollback. */
interface RolledBackAt {
  readonly config: string;
  /** By digest; absent in standard mode. */
  readonly image?: string | undefined;
}

/**
 * @returns the progress of pools towards their targets, or to where a rollback holds them. @param now ms since the
 * epoch.
 */
export function poolsArrival(names: readonly string[], cluster: ObservedCluster, now: number): Arrival {
  return arrivalOfAll(
    names.map((name) => {
      const pool = poolOf(name, cluster);
      if (pool === undefined) return noSuchPool(name);
      const switching = switchIsAhead(name, cluster);
      return switching === undefined
        ? arrivalAt(pool, cluster, isThere(pool, cluster), now)
        : { name, missing: switching };
    }),
  );
}

/** @returns what the operator has still to do for the switch, before the pool's own status is about its setting. */
function switchIsAhead(pool: string, cluster: ObservedCluster): string | undefined {
  const changes = decideMachineOSConfigs(
    readSwitch(cluster.switchMap),
    cluster.pools,
    cluster.machineOSConfigs,
  );
  const isOf = ({ spec }: Pick<MachineOSConfig, 'spec'>) => spec.machineConfigPool.name === pool;
  if (changes.delete.some(isOf)) return 'its MachineOSConfig is not deleted yet';
  return changes.create.some(isOf) ? 'its MachineOSConfig is not created yet' : undefined;
}

/**
 * @returns the progress of a pool towards the target of a rollback; a status from before the rollback doesn't count.
 */
export function rollbackArrival(
  name: string,
  at: RolledBackAt,
  cluster: ObservedCluster,
  now: number,
): Arrival {
  const pool = poolOf(name, cluster);
  if (pool === undefined) return arrivalOfAll([noSuchPool(name)]);
  const isRequested = pool.metadata.annotations?.[annotations.rollback] !== undefined;
  if (!isRequested) return { kind: 'stopped', why: `pool ${name}: the rollback was cleared in the meantime` };
  const images = imagesOf(at, cluster);
  const isSent = ({ spec }: MachineConfigNode) =>
    spec.configVersion.desired === at.config && images.has(spec.configImage?.desiredImage);
  const areSent = nodesOfPool(cluster, name).every(isSent);
  return arrivalOfAll([arrivalAt(pool, cluster, areSent && isAtRollback(pool), now)]);
}

/** The builder may have labelled the image again since, for nodes to reach it without a reboot. */
function imagesOf({ image }: RolledBackAt, { builds }: ObservedCluster): ReadonlySet<string | undefined> {
  const build = builds.find(({ status }) => image !== undefined && status?.digestedImagePushSpec === image);
  const same = build === undefined ? [] : buildsOfSameContent(buildsOf(build, builds), build);
  return new Set([image, ...same.map(({ status }) => status?.digestedImagePushSpec)]);
}

function buildsOf({ spec }: MachineOSBuild, builds: readonly MachineOSBuild[]): readonly MachineOSBuild[] {
  return builds.filter((build) => build.spec.machineOSConfig.name === spec.machineOSConfig.name);
}

/** @returns the progress of one node towards its target. @param now ms since the epoch. */
export function nodeArrival(name: string, cluster: ObservedCluster, now: number): Arrival {
  const node = cluster.machineConfigNodes.find(({ metadata }) => metadata.name === name);
  if (node === undefined)
    return { kind: 'stopped', why: `node ${name}: the MachineConfigNode no longer exists` };
  const pool = poolOf(node.spec.pool.name, cluster);
  if (runsTarget(node)) {
    const isOutdated = pool !== undefined && !isReportedNow(pool, cluster);
    return isOutdated ? { kind: 'underway', progress: `${name}: ${NOT_SEEN}` } : { kind: 'arrived' };
  }
  const degraded = trueCondition(node.status?.conditions, 'NodeDegraded');
  if (degraded !== undefined) {
    return { kind: 'stopped', why: inOneLine(formatFailed(name, degraded.message, adviceOn(node))) };
  }
  const paused = pool === undefined ? undefined : pausedBecause(pool, [node]);
  if (paused !== undefined) return { kind: 'stopped', why: `node ${name}: ${paused}` };
  const { desired } = node.spec.configVersion;
  return {
    kind: 'underway',
    progress: `${name}: not at ${desired} yet, ${formatSituation(nodeView(node, cluster, now), undefined)}`,
  };
}

/** @returns the progress of several nodes together: one that stopped ends the wait. */
export function allArrivals(arrivals: readonly Arrival[]): Arrival {
  const stopped = arrivals.flatMap((each) => (each.kind === 'stopped' ? [each.why] : []));
  if (stopped.length > 0) return { kind: 'stopped', why: stopped.join('; ') };
  const underway = arrivals.flatMap((each) => (each.kind === 'underway' ? [each.progress] : []));
  return underway.length > 0 ? { kind: 'underway', progress: underway.join('\n') } : { kind: 'arrived' };
}

/** @returns whether a node runs the target of its MachineConfigNode and has completed the update. */
export function runsTarget({ spec, status }: MachineConfigNode): boolean {
  return isAtTarget(spec, status) && conditionIsTrue(status?.conditions, 'Updated');
}

/** @returns why a pool doesn't continue by itself; undefined when it may. */
export function stoppedBecause({ status }: MachineConfigPool): string | undefined {
  const degraded = trueCondition(status?.conditions, 'Degraded');
  // The rollout continues with other nodes than those that failed; a node in several pools is in none.
  const goesOn = degraded?.reason === 'NodesDegraded' || degraded?.reason === NODES_IN_SEVERAL_POOLS;
  return goesOn ? undefined : degraded?.message;
}

/** @returns which nodes the pool lacks, where all others run its target. */
function lackingBecause({ status }: MachineConfigPool): string | undefined {
  const degraded = trueCondition(status?.conditions, 'Degraded');
  return degraded?.reason === NODES_IN_SEVERAL_POOLS ? degraded.message : undefined;
}

/**
 * A paused pool grants nothing, so it stays as it is until somebody resumes it; so does every pool while
 * the MachineConfiguration says that nodes are not managed.
 *
 * @param nodes of the pool.
 * @returns why it doesn't continue by itself; undefined when it may: it is neither, or a node completes what was
 *   granted.
 */
export function pausedBecause(
  { metadata, spec, status }: MachineConfigPool,
  nodes: readonly MachineConfigNode[],
): string | undefined {
  const isUnderWay = nodes.some((node) => node.spec.grant !== undefined && !runsTarget(node));
  if (isUnderWay) return undefined;
  const updating = conditionOf(status?.conditions, 'Updating');
  if (updating?.reason === 'Unmanaged') return `the operator reports: ${updating.message}`;
  if (spec.paused !== true) return undefined;
  const resume = `kubectl patch mcp ${metadata.name} --type merge -p '{"spec":{"paused":false}}'`;
  return `the pool is paused, so no update starts until it is resumed: ${resume}`;
}

/** @returns what the operator reports of a pool's progress, with the count that it is about; undefined for nothing. */
export function formatProgress({ status }: MachineConfigPool): string | undefined {
  const message = conditionOf(status?.conditions, 'Updating')?.message ?? '';
  if (message === '') return undefined;
  const { machineCount = 0, updatedMachineCount = 0 } = status ?? {};
  return `${updatedMachineCount}/${machineCount} nodes; the operator reports: ${message}`;
}

/** @param saysSo whether the pool reports that it has arrived, which leaves out nodes that it ignores. */
function arrivalAt(
  pool: MachineConfigPool,
  cluster: ObservedCluster,
  saysSo: boolean,
  now: number,
): PartArrival {
  const { name } = pool.metadata;
  const nodes = nodesOfPool(cluster, name);
  const outstanding = nodes.filter((node) => !runsTarget(node));
  const { machineCount = nodes.length, updatedMachineCount = nodes.length - outstanding.length } =
    pool.status ?? {};
  const count = `${updatedMachineCount}/${machineCount} nodes`;
  const stopped = stoppedBecause(pool);
  if (stopped !== undefined) {
    const updating = conditionOf(pool.status?.conditions, 'Updating');
    const failed = updating?.reason === 'RolloutStopped' ? failedIn(outstanding, cluster, now) : undefined;
    return { name, stopped: [stopped, ...(failed === undefined ? [] : [failed])].join('; ') };
  }
  if (saysSo) return { name, stopped: lackingBecause(pool) };
  const paused = pausedBecause(pool, nodes);
  if (paused !== undefined) return { name, stopped: `${count}, ${paused}` };
  const stuck = stuckBecause(pool, outstanding, nodes, cluster, now);
  if (stuck !== undefined) return { name, stopped: `${count}, ${stuck}` };
  if (!isReportedNow(pool, cluster)) return { name, missing: NOT_SEEN };
  return { name, missing: formatProgress(pool) ?? `${count}, the pool is not Updated yet` };
}

const NOT_SEEN = 'the operator has not seen the last change of the pool or its MachineConfigs yet';

/** A pool that a rollback holds has arrived without being Updated. */
function isThere(pool: MachineConfigPool, cluster: ObservedCluster): boolean {
  return (
    isReportedNow(pool, cluster) &&
    (conditionIsTrue(pool.status?.conditions, 'Updated') || isAtRollback(pool))
  );
}

/**
 * @returns whether the status of a pool is about its present spec and MachineConfigs: the operator has seen the last
 *   change. An older operator doesn't report which MachineConfigs it has seen.
 */
export function isReportedNow(
  pool: MachineConfigPool,
  { machineConfigs }: Pick<ObservedCluster, 'machineConfigs'>,
): boolean {
  const { metadata, status } = pool;
  if (metadata.generation !== undefined && status?.observedGeneration !== metadata.generation) return false;
  const observed = status?.observedMachineConfigs;
  return (
    observed === undefined ||
    machineConfigs === undefined ||
    observed === configVersions(pool, machineConfigs)
  );
}

function isAtRollback({ metadata, status }: MachineConfigPool): boolean {
  const updated = conditionOf(status?.conditions, 'Updated');
  return metadata.annotations?.[annotations.rollback] !== undefined && updated?.reason === 'RolledBack';
}

function poolOf(name: string, { pools }: ObservedCluster): MachineConfigPool | undefined {
  return pools.find(({ metadata }) => metadata.name === name);
}

function noSuchPool(name: string): PartArrival {
  return { name, stopped: 'the MachineConfigPool no longer exists' };
}

/** The progress towards the state to wait for. */
export type Arrival =
  | { readonly kind: 'arrived' }
  /** The progress, as text: a line for each pool. */
  | { readonly kind: 'underway'; readonly progress: string }
  /** It doesn't continue by itself, and why. */
  | { readonly kind: 'stopped'; readonly why: string };

/** The progress of one of several pools. */
export interface PartArrival {
  readonly name: string;
  /** What is still missing, as text. */
  readonly missing?: string;
  /** Why it doesn't continue by itself. */
  readonly stopped?: string | undefined;
}

/** @returns the progress of all of them; one that has stopped takes precedence over those that continue. */
export function arrivalOfAll(parts: readonly PartArrival[]): Arrival {
  const stopped = parts.flatMap(({ name, stopped: why }) =>
    why === undefined ? [] : [inOneLine(`pool ${name}: ${why}`)],
  );
  if (stopped.length > 0) return { kind: 'stopped', why: stopped.join('; ') };
  const missing = parts.flatMap(({ name, missing: what }) =>
    what === undefined ? [] : [inOneLine(`${name}: ${what}`)],
  );
  return missing.length > 0 ? { kind: 'underway', progress: missing.join('\n') } : { kind: 'arrived' };
}
