import { formatActions } from '../../api/disruption-action.ts';
import type { UpdatePlan } from '../../api/machine-config-node.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import { costOf } from '../../predict/cost.ts';
import type { PoolAsk } from '../../predict/plan.ts';
import { BrokenPromise } from './compare-actions.ts';
import { PaperNode } from './paper-node.ts';
import {
  type BaseNames,
  firstState,
  formatState,
  stateAfter,
  type Walk,
  type WalkState,
  wantedOf,
} from './steps.ts';
import { WalkCluster } from './walk-cluster.ts';

const NODES = ['node-a', 'node-b', 'node-c'];

/** A walk of a pool whose nodes do not all keep up. Their disks and boots are the walk's on real nodes. */
export interface PaperWalk {
  readonly walk: Walk;
  readonly layered: boolean;
  /** At each step, the nodes that take it at once, as bits; the others are behind. */
  readonly takes: readonly number[];
}

interface Parts {
  readonly registry: RegistryClient;
  /** `host:port` */
  readonly host: string;
  readonly imageOf: BaseNames['imageOf'];
  readonly signal: AbortSignal;
}

/**
 * Compares at each step what `shale plan` says of the pool with what each daemon makes of the image that the builder
 * labelled.
 *
 * @returns how many answers were compared.
 * @throws BrokenPromise at the first that differs.
 */
export async function runPaperWalk(
  { walk, layered, takes }: PaperWalk,
  { registry, host, imageOf, signal }: Parts,
): Promise<number> {
  // No object says where a tag points to.
  const base = walk.base === 'tag' ? 'digest' : walk.base;
  const names = { imageOf, tag: '', base } as const;
  const cluster = new WalkCluster(registry, `${host}/os/worker`, signal);
  const parts = { cluster, registry, stock: imageOf('1'), signal };
  const nodes = await Promise.all(NODES.map((name) => PaperNode.start({ ...parts, name })));
  const earlier: WalkState[] = [];
  let state: WalkState = { ...firstState(walk), layered };
  cluster.apply(wantedOf(state, names));
  await assign(cluster, nodes);
  for (const node of nodes) await node.take();
  cluster.settle();
  let compared = 0;
  for (const [index, step] of walk.steps.entries()) {
    // A switch is decided by the node's disk, too.
    if (step.kind === 'boot' || step.kind === 'layering') continue;
    const next = stateAfter(state, step, earlier);
    const plan = await cluster.plan(
      wantedOf(next, names),
      nodes.map(({ object }) => object),
    );
    if ('problems' in plan) continue;
    cluster.apply(wantedOf(next, names));
    await assign(cluster, nodes);
    const asked = await Promise.all(nodes.map((node) => node.ask()));
    const problems = differences(plan, asked, nodes, imageOf(state.version));
    if (problems.length > 0) {
      const where = `step ${index} (${JSON.stringify(step)}), base by ${base}:`;
      throw new BrokenPromise([where, ...problems, formatState(state), formatState(next)].join('\n'));
    }
    compared += nodes.length;
    const taking = takes[index] ?? 0;
    for (const [at, node] of nodes.entries()) if (((taking >> at) & 1) === 1) await node.take();
    if (nodes.every((node) => node.isAtTarget())) cluster.settle();
    earlier.push(state);
    state = next;
  }
  return compared;
}

async function assign(cluster: WalkCluster, nodes: readonly PaperNode[]): Promise<void> {
  const specs = await cluster.assign(nodes.map(({ object }) => object));
  for (const [index, spec] of specs.entries()) nodes[index]?.assign(spec);
}

/** @param base of the pool before. @returns how the answers differ, one line each, with what led to them. */
function differences(
  plan: PoolAsk,
  asked: readonly (UpdatePlan | undefined)[],
  nodes: readonly PaperNode[],
  base: string,
): readonly string[] {
  const predicted = Object.entries(plan.outcomes ?? {}).flatMap(([cost, count]) =>
    Array.from({ length: count }, () => cost),
  );
  const costs = asked.map((ask) => (ask === undefined ? 'nothing' : costOf(ask)));
  const isSame = costs.toSorted().join() === predicted.toSorted().join();
  // Of a node that runs what the pool had before, plan says more than the cost.
  const others = asked.filter((ask, at) => {
    const { configVersion, baseImage } = nodes[at]?.object.status ?? {};
    return (
      ask !== undefined &&
      configVersion?.current === plan.from &&
      baseImage === base &&
      isSame &&
      new Set(costs).size === 1 &&
      formatActions(ask.actions) !== formatActions(plan.actions)
    );
  });
  if (isSame && others.length === 0) return [];
  return [
    `- plan said ${predicted.join(', ')}, but the daemons say ${costs.join(', ')}`,
    ...asked.map((ask, at) => {
      const { configVersion, baseImage } = nodes[at]?.object.status ?? {};
      const what = ask === undefined ? 'nothing' : `${formatActions(ask.actions)} (${ask.source})`;
      return `${NODES[at]} runs ${configVersion?.current} on ${baseImage}: ${what}`;
    }),
    `plan from ${plan.from} to ${plan.to}: ${formatActions(plan.actions)}`,
    ...plan.causes.map(({ subject, rule }) => `  ${subject}: ${rule}`),
  ];
}
