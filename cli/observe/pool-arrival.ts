import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { annotations } from '../../api/names.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import { nodesOfPool, type ObservedCluster } from './observed-cluster.ts';

/** Where a rollback takes a pool. */
interface HeldAt {
  readonly config: string;
  /** By digest; absent in standard mode. */
  readonly image?: string;
}

/** Looks how far pools are on the way to what they are to run, or to where a rollback holds them. */
export function poolsArrival(names: readonly string[], seen: ObservedCluster): Arrival {
  return arrivalOfAll(
    names.map((name) => {
      const pool = poolOf(name, seen);
      return pool === undefined ? noSuchPool(name) : arrivalAt(pool, seen, isThere(pool));
    }),
  );
}

/** Looks how far a pool is on its way to where a rollback takes it; whatever it said before the rollback is over. */
export function rollbackArrival(name: string, at: HeldAt, seen: ObservedCluster): Arrival {
  const pool = poolOf(name, seen);
  if (pool === undefined) return arrivalOfAll([noSuchPool(name)]);
  const isHeld = pool.metadata.annotations?.[annotations.rollback] !== undefined;
  if (!isHeld) return { kind: 'stopped', why: `pool ${name}: the rollback was cleared in the meantime` };
  const isSent = ({ spec }: MachineConfigNode) =>
    spec.configVersion.desired === at.config && spec.configImage?.desiredImage === at.image;
  const areSent = nodesOfPool(seen, name).every(isSent);
  return arrivalOfAll([arrivalAt(pool, seen, areSent && isAtRollback(pool))]);
}

/** Looks how far one node is on the way to what it is to run. */
export function nodeArrival(name: string, seen: ObservedCluster): Arrival {
  const node = seen.machineConfigNodes.find(({ metadata }) => metadata.name === name);
  if (node === undefined)
    return { kind: 'stopped', why: `node ${name}: the MachineConfigNode no longer exists` };
  if (runsTarget(node)) return { kind: 'arrived' };
  const condition = (type: string) => node.status?.conditions?.find((found) => found.type === type);
  const degraded = condition('NodeDegraded');
  if (degraded?.status === 'True') return { kind: 'stopped', why: `node ${name}: ${degraded.message}` };
  const { desired } = node.spec.configVersion;
  const message = condition('UpdatePrepared')?.message ?? '';
  return {
    kind: 'underway',
    seen: `${name}: not at ${desired} yet${message === '' ? '' : `, ${message}`}`,
  };
}

/** @returns whether a node runs what its MachineConfigNode says it should, and is done with it. */
export function runsTarget({ spec, status }: MachineConfigNode): boolean {
  return (
    status?.configVersion?.current === spec.configVersion.desired &&
    status.configImage?.currentImage === spec.configImage?.desiredImage &&
    (status.mode === undefined || (status.mode === 'Layered') === (spec.configImage !== undefined)) &&
    conditionIsTrue(status.conditions, 'Updated')
  );
}

/** @returns why a pool won't go on by itself; undefined where it may. */
export function stoppedBecause({ status }: MachineConfigPool): string | undefined {
  const degraded = status?.conditions?.find(({ type }) => type === 'Degraded');
  // NodesDegraded alone is a node that tries again by itself; the rollout goes on with others.
  return degraded?.status === 'True' && degraded.reason !== 'NodesDegraded' ? degraded.message : undefined;
}

/** @returns what a pool says of its way beyond its own count, which its words begin with; '' for nothing. */
export function formatProgress({ status }: MachineConfigPool): string {
  const message = status?.conditions?.find(({ type }) => type === 'Updating')?.message;
  const rest = message?.replace(/^\d+ of \d+ nodes? runs? [^;]*(; )?/, '') ?? '';
  return rest === '' ? '' : `, ${rest}`;
}

/** @param saysSo whether the pool says that it is there, which it says without nodes that nobody waits for. */
function arrivalAt(pool: MachineConfigPool, seen: ObservedCluster, saysSo: boolean): PartArrival {
  const { name } = pool.metadata;
  const nodes = nodesOfPool(seen, name);
  const there = nodes.filter(runsTarget).length;
  const count = `${there}/${nodes.length} nodes`;
  const stopped = stoppedBecause(pool);
  if (stopped !== undefined) return { name, stopped };
  if (saysSo) return { name };
  if (pool.spec.paused === true && there < nodes.length)
    return { name, missing: `${count}, the pool is paused` };
  if (there < nodes.length) return { name, missing: `${count}${formatProgress(pool)}` };
  return { name, missing: `${count}, the pool is not Updated yet` };
}

/** A pool that is held by a rollback is where it is meant to be, and not Updated. */
function isThere(pool: MachineConfigPool): boolean {
  const { metadata, status } = pool;
  const isOfNow = metadata.generation === undefined || status?.observedGeneration === metadata.generation;
  return isOfNow && (conditionIsTrue(status?.conditions, 'Updated') || isAtRollback(pool));
}

function isAtRollback({ metadata, status }: MachineConfigPool): boolean {
  const updated = status?.conditions?.find(({ type }) => type === 'Updated');
  return metadata.annotations?.[annotations.rollback] !== undefined && updated?.reason === 'RolledBack';
}

function poolOf(name: string, { pools }: ObservedCluster): MachineConfigPool | undefined {
  return pools.find(({ metadata }) => metadata.name === name);
}

function noSuchPool(name: string): PartArrival {
  return { name, stopped: 'the MachineConfigPool no longer exists' };
}

/** How far what is waited for has come. */
export type Arrival =
  | { readonly kind: 'arrived' }
  /** How far it is, in words. */
  | { readonly kind: 'underway'; readonly seen: string }
  /** It has come to a stop, and why. */
  | { readonly kind: 'stopped'; readonly why: string };

/** How far one of several has come. */
export interface PartArrival {
  readonly name: string;
  /** What is not there yet, in words. */
  readonly missing?: string;
  /** Why it won't come by itself. */
  readonly stopped?: string;
}

/** @returns how far all of them have come: one that stands still counts more than those that are on their way. */
export function arrivalOfAll(parts: readonly PartArrival[]): Arrival {
  const stopped = parts.flatMap(({ name, stopped: why }) =>
    why === undefined ? [] : [`pool ${name}: ${why}`],
  );
  if (stopped.length > 0) return { kind: 'stopped', why: stopped.join('; ') };
  const missing = parts.flatMap(({ name, missing: what }) =>
    what === undefined ? [] : [`${name}: ${what}`],
  );
  return missing.length > 0 ? { kind: 'underway', seen: missing.join(', ') } : { kind: 'arrived' };
}
