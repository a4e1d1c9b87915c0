import type { MachineConfig } from '../../api/machine-config.ts';
import { annotations } from '../../api/names.ts';
import { DEFAULT_LIMITS, type Limits } from '../../machineconfig/ignition/contents.ts';
import { formatConfigProblems } from '../../machineconfig/problem.ts';
import {
  DEFAULT_NODE_USER,
  irreconcilableOnNode,
  type StorageOverrides,
} from '../../machineconfig/reconcilable.ts';
import type { ClusterState } from '../objects/cluster-state.ts';
import { formatNodes } from './refusing-nodes.ts';

/** Nodes of a pool that can't apply a config while they run, and keep their current one. */
export interface IrreconcilableNodes {
  readonly nodes: readonly string[];
  readonly why: string;
}

/** A config that nodes are to run, and how it is compared with what they run. */
export interface IgnitionTarget {
  readonly rendered: MachineConfig;
  /** The MachineConfigs that it was rendered from. */
  readonly configs: readonly MachineConfig[];
  readonly limits?: Limits;
  readonly nodeUser?: string | undefined;
  readonly overrides: StorageOverrides;
}

/** @returns the nodes of a pool that the operator would hold back from a config, grouped by reason. */
export function irreconcilableNodes(
  cluster: Pick<ClusterState, 'machineConfigNodes' | 'nodes' | 'rendered'>,
  pool: string,
  target: IgnitionTarget,
): readonly IrreconcilableNodes[] {
  const why = comparison(target, cluster.rendered);
  const nodes = new Map(cluster.nodes.map((node) => [node.metadata.name, node]));
  const refusals = cluster.machineConfigNodes
    .filter(({ spec }) => spec.pool.name === pool)
    .flatMap(({ metadata: { name }, status }) => {
      const node = nodes.get(name);
      const reason = why({
        running: status?.configVersion?.current,
        provisioned: node?.metadata.annotations?.[annotations.provisionedConfig],
        target: target.rendered.metadata.name,
      });
      return reason === undefined ? [] : [{ name, reason }];
    });
  const groups = Map.groupBy(refusals, ({ reason }) => reason);
  return [...groups].map(([reason, alike]) => ({
    nodes: alike.map(({ name }) => name).toSorted(),
    why: reason,
  }));
}

/**
 * @returns why a node that Ignition did not provision with a config can't apply it, as text; undefined where it can.
 */
export function irreconcilableOnNewNodes(target: IgnitionTarget): string | undefined {
  const why = comparison(target, new Map());
  return why({ running: undefined, provisioned: undefined, target: target.rendered.metadata.name });
}

function comparison(
  { rendered, configs, limits = DEFAULT_LIMITS, nodeUser = DEFAULT_NODE_USER, overrides }: IgnitionTarget,
  others: ClusterState['rendered'],
) {
  return reconcilability({
    configOf: (name) => (name === rendered.metadata.name ? rendered : others.get(name)),
    sourcesOf: () => configs,
    limits,
    nodeUser,
    overrides,
  });
}

/** @returns one line for people. */
export function formatIrreconcilable({ nodes, why }: IrreconcilableNodes): string {
  return `${formatNodes(nodes)}: ${why}`;
}

/** What one node is compared by. */
export interface NodeToReconcile {
  /**
   * Name of the rendered config that the node runs; undefined or '' where it has never had one, or has not reported it.
   */
  readonly running: string | undefined;
  /** The Node's annotation shale.dev/provisioned-config. */
  readonly provisioned: string | undefined;
  /** Name of the rendered config that the node is to run. */
  readonly target: string;
}

export interface ReconcilabilityInputs {
  /** @returns a rendered config; undefined where it doesn't exist. */
  readonly configOf: (name: string) => MachineConfig | undefined;
  /** @returns the MachineConfigs that a rendered config was rendered from, as far as they are known. */
  readonly sourcesOf: (name: string) => readonly MachineConfig[];
  readonly limits: Limits;
  readonly nodeUser: string;
  /** Sections of storage that a change may differ in. */
  readonly overrides: StorageOverrides;
}

/** @returns why a node can't apply its target while it runs, as text; undefined where it can. */
export type WhyIrreconcilable = (node: NodeToReconcile) => string | undefined;

/** What was compared, by the target's object and by the object of what a node runs. */
export type ComparedConfigs = WeakMap<MachineConfig, WeakMap<object, { readonly why: string | undefined }>>;

/** Stands for the config of a node that has none. */
const NONE = {};

/**
 * Compares what configs ask of nodes with what the nodes run.
 *
 * A node without a config is taken as one that Ignition provisioned with none, unless its admin says otherwise: what
 * Shale can't set up would be missing on it, and nothing would report that. An annotation that names the target itself
 * decides.
 *
 * @param compared by the same overrides; it is added to: thousands of nodes have few different pairs of configs, and
 *   comparing one parses both.
 */
export function reconcilability(
  { configOf, sourcesOf, limits, nodeUser, overrides }: ReconcilabilityInputs,
  compared: ComparedConfigs = new WeakMap(),
): WhyIrreconcilable {
  const compare = (from: MachineConfig | undefined, to: MachineConfig): string | undefined => {
    const target = to.metadata.name;
    const update = { running: from, target: to, sources: sourcesOf(target) };
    const problems = irreconcilableOnNode(update, { limits, nodeUser, overrides });
    return problems.length === 0 ? undefined : formatProblems(target, problems.map(formatConfigProblems));
  };
  return ({ running = '', provisioned = '', target }) => {
    if (running === target || provisioned === target) return undefined;
    const to = configOf(target);
    if (to === undefined) return undefined;
    const from = configOf(running === '' ? provisioned : running);
    const known = compared.get(to) ?? new WeakMap<object, { readonly why: string | undefined }>();
    compared.set(to, known);
    const verdict = known.get(from ?? NONE) ?? { why: compare(from, to) };
    known.set(from ?? NONE, verdict);
    return verdict.why;
  };
}

/** MachineConfigs whose problems a message names; the others are counted. */
const NAMED = 10;

function formatProblems(target: string, problems: readonly string[]): string {
  const named = problems.slice(0, NAMED).join('; ');
  const more = problems.length > NAMED ? `; and ${problems.length - NAMED} more` : '';
  return `${target} can't be applied to a running node, because only Ignition sets this up, at the first boot: ${named}${more}. Provision the node again or, if Ignition provisioned it with ${target}, set its annotation ${annotations.provisionedConfig} to that name`;
}
