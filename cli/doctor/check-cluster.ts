import { unsupportedBecause } from '../../predict/node/predict-node.ts';
import { noun, plural } from '../../api/plural.ts';
import { poolOfNode } from '../../machineconfig/pools.ts';
import { readSigning } from '../../opt-in/signing/signing-keys.ts';
import { formatProblems } from '../../opt-in/status.ts';
import { readSwitch } from '../../opt-in/switch.ts';
import { nodeView } from '../../view/node-view.ts';
import type { ObservedCluster } from '../../view/observed-cluster.ts';
import { type Finding, findings } from './finding.ts';

/** Nodes named in a finding; the others are counted. */
const NAMED_NODES = 5;

/** Checks the admin's settings and what the daemons report about their nodes. @param now ms since the epoch. */
export function judgeNodes(cluster: ObservedCluster, now: number): Finding[] {
  const { ok, warning, failure } = findings('nodes');
  const state = readSwitch(cluster.switchMap);
  const views = cluster.machineConfigNodes.map((node) => nodeView(node, cluster, now));
  const silent = views.filter((view) => view.state === 'silent').map(({ name }) => name);
  const unsupported = new Set(
    cluster.machineConfigNodes
      .filter((node) => unsupportedBecause(node) !== undefined)
      .map(({ metadata }) => metadata.name),
  );
  const degraded = views.filter((view) => view.state === 'degraded');
  const placed = cluster.nodes.map((node) => ({
    node: node.metadata.name,
    pool: poolOfNode(node, cluster.pools),
  }));
  const homeless = placed.flatMap(({ node, pool }) => (pool.ok && pool.pool === undefined ? [node] : []));
  const results = [
    ...(state.kind === 'invalid'
      ? [failure(formatProblems(state.problems), 'correct the ConfigMap, or write it with shale enable')]
      : []),
    ...(state.kind !== 'off' && readSigning(cluster.switchMap) === 'disabled'
      ? [
          warning(
            'images are not signed: anyone who may push to the image repository decides what nodes boot',
            'run shale enable --signing required',
          ),
        ]
      : []),
    ...(cluster.pools.length === 0
      ? [
          warning(
            'there is no MachineConfigPool, so no node is managed',
            'create one, such as the one in docs/install.md, "Pools"',
          ),
        ]
      : []),
    ...placed.flatMap(({ pool }) =>
      pool.ok
        ? []
        : [failure(pool.problem, 'correct the node selectors of the pools, or the labels of the node')],
    ),
    ...(homeless.length === 0
      ? []
      : [
          warning(
            `no pool selects ${named(homeless)}`,
            "label the nodes, or change a pool's node selector to match them",
          ),
        ]),
    ...(silent.length === 0
      ? []
      : [
          failure(
            `no daemon has reported yet from ${named(silent)}`,
            'check the log of the shale-daemon pod there: it names the backend (bootc, rpm-ostree, ostree) that is missing',
          ),
        ]),
    ...degraded.map(({ name, what }) =>
      failure(
        `${name} is degraded: ${what ?? ''}`,
        unsupported.has(name)
          ? 'install an OS that bootc, rpm-ostree or ostree manages, or remove the node from the pools (docs/os-backends.md)'
          : `run shale explain ${name} to see what the update required`,
      ),
    ),
  ];
  return results.length === 0
    ? [ok(`${plural(views.length, 'node')} ${noun(views.length, 'reports', 'report')}, none is degraded`)]
    : results;
}

function named(nodes: readonly string[]): string {
  const more = nodes.length - NAMED_NODES;
  return `${nodes.slice(0, NAMED_NODES).join(', ')}${more > 0 ? ` and ${plural(more, 'more node')}` : ''}`;
}
