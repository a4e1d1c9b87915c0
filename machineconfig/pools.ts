import type { Node } from '../api/kubernetes.ts';
import { type LabelSelector, matchesSelector } from '../api/label-selector.ts';
import type { MachineConfig } from '../api/machine-config.ts';
import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import { annotations } from '../api/names.ts';

type Labels = Readonly<Record<string, string>>;

/** A pool without a selector, or with an empty one, selects nothing: this is a mistake rather than intent (MCO). */
export function isEmptySelector(selector: LabelSelector | undefined): boolean {
  const { matchLabels = {}, matchExpressions = [] } = selector ?? {};
  return Object.keys(matchLabels).length + matchExpressions.length === 0;
}

function poolMatches(selector: LabelSelector | undefined, labels: Labels): boolean {
  return selector !== undefined && !isEmptySelector(selector) && matchesSelector(selector, labels);
}

/** @returns whether a selector of a pool selects an object by its labels; an empty one selects nothing. */
export function selectsLabels(selector: LabelSelector | undefined, labels: Labels): boolean {
  return poolMatches(selector, labels);
}

/**
 * A rendered config is made of what pools select and is never one of them. It has no labels, so a selector that only
 * excludes (NotIn, DoesNotExist) would match those of every pool: what was taken out of the MachineConfigs would stay
 * for ever.
 *
 * @returns whether a MachineConfig was rendered, by Shale or MCO: both name it so, and have the pool as its controller.
 */
export function isRendered({ metadata }: MachineConfig): boolean {
  if (metadata.annotations?.[annotations.generatedByController] === undefined) return false;
  const isOfPool = metadata.ownerReferences?.some(
    ({ kind, controller }) => kind === 'MachineConfigPool' && controller === true,
  );
  return isOfPool === true || metadata.name.startsWith(RENDERED_PREFIX);
}

const RENDERED_PREFIX = 'rendered-';

/**
 * @returns the MachineConfigs that a pool selects by their labels, in the given order; rendered configs are never
 *   selected.
 */
export function selectedConfigs(
  pool: MachineConfigPool,
  configs: readonly MachineConfig[],
): readonly MachineConfig[] {
  return configs.filter(
    (config) =>
      poolMatches(pool.spec.machineConfigSelector, config.metadata.labels ?? {}) && !isRendered(config),
  );
}

/** @returns whether an object's selector of pools selects a pool. */
export function selectsPool(selector: LabelSelector | undefined, pool: MachineConfigPool): boolean {
  return poolMatches(selector, pool.metadata.labels ?? {});
}

export type PoolOfNode =
  /** Without a pool the node is not managed. */
  | { readonly ok: true; readonly pool?: MachineConfigPool }
  | {
      readonly ok: false;
      readonly problem: string;
      /** The custom pools that select the node, sorted. */
      readonly pools: readonly string[];
      /** Those, and master where it selects the node: each lacks it until one custom pool at most selects it. */
      readonly lackedBy: readonly string[];
    };

const MASTER = 'master';
const WORKER = 'worker';
const OS_LABEL = 'kubernetes.io/os';

/**
 * The pool that a node belongs to, with MCO's precedence: master beats custom pools, a custom pool beats
 * worker. Membership is by the pools' node selectors alone, so pools need no role labels of OpenShift.
 *
 * @returns the pool, none, or an error when several custom pools select the node. A node that master and one custom
 *   pool select belongs to master.
 */
export function poolOfNode(node: Node, pools: readonly MachineConfigPool[]): PoolOfNode {
  const labels = node.metadata.labels ?? {};
  if (labels[OS_LABEL] === 'windows') return { ok: true };
  const claiming = pools.filter((pool) => poolMatches(pool.spec.nodeSelector, labels));
  const named = (name: string) => claiming.find((pool) => pool.metadata.name === name);
  const custom = claiming.filter(({ metadata }) => metadata.name !== MASTER && metadata.name !== WORKER);
  if (custom.length > 1) {
    const names = custom.map((pool) => pool.metadata.name).toSorted();
    return {
      ok: false,
      problem: `node ${node.metadata.name} belongs to ${names.length} custom pools (${names.join(', ')}); expected at most one`,
      pools: names,
      lackedBy: named(MASTER) === undefined ? names : [...names, MASTER],
    };
  }
  const pool = named(MASTER) ?? custom[0] ?? named(WORKER);
  return pool === undefined ? { ok: true } : { ok: true, pool };
}

/**
 * @returns the rendered config that every node of a pool was last updated to, and with which its next one has to be
 *   reconcilable; undefined where no node has been, a pool without nodes included.
 */
export function runningConfig({ status }: MachineConfigPool): string | undefined {
  return status?.machineCount === 0 ? undefined : status?.configuration?.name;
}
