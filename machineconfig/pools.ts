import type { Node } from '../api/kubernetes.ts';
import { fulfils } from '../api/label-selector.ts';
import type { MachineConfig } from '../api/machine-config.ts';
import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import type { LabelSelector } from '../api/object.ts';

export type Labels = Readonly<Record<string, string>>;

/**
 * Whether a label selector matches an object (metav1.LabelSelector): every requirement must match. As in Kubernetes an
 * empty selector matches everything, and NotIn matches when the label is absent.
 */
export function matchesSelector(selector: LabelSelector, labels: Labels): boolean {
  const { matchLabels = {}, matchExpressions = [] } = selector;
  return (
    Object.entries(matchLabels).every(([key, value]) =>
      fulfils({ key, operator: 'In', values: [value] }, labels),
    ) &&
    matchExpressions.every(({ key, operator, values = [] }) => fulfils({ key, operator, values }, labels))
  );
}

/** A pool without a selector, or with an empty one, selects nothing: this is a mistake rather than intent (MCO). */
function poolMatches(selector: LabelSelector | undefined, labels: Labels): boolean {
  const { matchLabels = {}, matchExpressions = [] } = selector ?? {};
  const terms = Object.keys(matchLabels).length + matchExpressions.length;
  return selector !== undefined && terms > 0 && matchesSelector(selector, labels);
}

/** @returns the MachineConfigs that a pool selects by their labels, in the given order. */
export function selectedConfigs(
  pool: MachineConfigPool,
  configs: readonly MachineConfig[],
): readonly MachineConfig[] {
  return configs.filter(({ metadata }) =>
    poolMatches(pool.spec.machineConfigSelector, metadata.labels ?? {}),
  );
}

export type PoolOfNode =
  /** Without a pool the node is not managed. */
  { readonly ok: true; readonly pool?: MachineConfigPool } | { readonly ok: false; readonly problem: string };

const MASTER = 'master';
const WORKER = 'worker';
const OS_LABEL = 'kubernetes.io/os';

/**
 * The pool that a node belongs to, with MCO's precedence: master beats custom pools, a custom pool beats
 * worker. Membership is by the pools' node selectors alone, so pools need no role labels of OpenShift.
 *
 * @returns the pool, none, or an error when several custom pools select the node. A node that master and one custom pool
 *   select belongs to master.
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
    };
  }
  const pool = named(MASTER) ?? custom[0] ?? named(WORKER);
  return pool === undefined ? { ok: true } : { ok: true, pool };
}
