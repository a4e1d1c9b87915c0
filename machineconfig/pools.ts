import type { Node } from '../api/kubernetes.ts';
import { fulfils } from '../api/label-selector.ts';
import type { MachineConfig } from '../api/machine-config.ts';
import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import type { LabelSelector } from '../api/object.ts';

export type Labels = Readonly<Record<string, string>>;

/**
 * Whether a label selector chooses an object (metav1.LabelSelector): every term of it must hold. As in Kubernetes an
 * empty selector chooses everything, and NotIn holds where the label is absent.
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

/** A pool without a selector, or with an empty one, chooses nothing: it is a slip, not a wish for everything (MCO). */
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
  /** No pool: nobody manages the node. */
  { readonly ok: true; readonly pool?: MachineConfigPool } | { readonly ok: false; readonly problem: string };

const MASTER = 'master';
const WORKER = 'worker';
const OS_LABEL = 'kubernetes.io/os';

/**
 * The one pool whose configuration a node takes, with MCO's precedence: master beats custom pools, a custom pool beats
 * worker. Membership is by the pools' node selectors alone, so pools need no role labels of OpenShift.
 *
 * @returns the pool, none, or the reason why it can't be said which: more than one custom pool claims the node. A master
 *   that custom pools claim, too, is master's, unless there are several of them.
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
