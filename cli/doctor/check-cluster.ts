import type { DaemonSet } from '../../api/kubernetes.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import { poolOfNode } from '../../machineconfig/pools.ts';
import { formatProblems, readSwitch } from '../../opt-in/switch.ts';
import type { ObservedCluster } from '../observe/observed-cluster.ts';
import { nodeView } from '../status/node-view.ts';
import { type Finding, findings } from './finding.ts';

/** Nodes named in a finding; the rest is counted. */
const NAMED_NODES = 5;

/** Judges whether Shale's processes run. @param daemons undefined where there is no DaemonSet. */
export function judgeProcesses(
  seen: ObservedCluster,
  daemons: DaemonSet | undefined,
  namespace: string,
): Finding[] {
  const { ok, warning, failure } = findings('processes');
  const logs = (what: string) =>
    `kubectl -n ${namespace} describe ${what}; kubectl -n ${namespace} logs ${what}`;
  const install = 'kubectl apply -k manifests/base';
  const { desiredNumberScheduled = 0, numberReady = 0 } = daemons?.status ?? {};
  const wantsBuilder = seen.machineOSConfigs.length > 0;
  return [
    seen.operator === undefined
      ? failure(`there is no Deployment ${namespace}/shale-operator`, install)
      : (seen.operator.status?.availableReplicas ?? 0) > 0
        ? ok('the operator runs')
        : failure('the operator does not run', logs('deployment/shale-operator')),
    daemons === undefined
      ? failure(`there is no DaemonSet ${namespace}/shale-daemon`, install)
      : numberReady >= desiredNumberScheduled
        ? ok(`${numberReady} daemons run`)
        : failure(`${numberReady} of ${desiredNumberScheduled} daemons run`, logs('daemonset/shale-daemon')),
    ...(!wantsBuilder || (seen.builder?.status?.availableReplicas ?? 0) > 0
      ? []
      : [
          warning(
            'layering is on, and the Machine OS Builder does not run',
            logs('deployment/machine-os-builder'),
          ),
        ]),
  ];
}

/** Judges what an admin has set, and what the daemons say of their nodes. @param now ms since the epoch. */
export function judgeNodes(seen: ObservedCluster, now: number): Finding[] {
  const { ok, warning, failure } = findings('nodes');
  const state = readSwitch(seen.switchMap);
  const views = seen.machineConfigNodes.map((node) => nodeView(node, seen, now));
  const silent = views.filter((view) => view.state === 'silent').map(({ name }) => name);
  const unsupported = new Set(
    seen.machineConfigNodes.filter(isUnsupported).map(({ metadata }) => metadata.name),
  );
  const degraded = views.filter((view) => view.state === 'degraded');
  const placed = seen.nodes.map((node) => ({ node: node.metadata.name, pool: poolOfNode(node, seen.pools) }));
  const homeless = placed.flatMap(({ node, pool }) => (pool.ok && pool.pool === undefined ? [node] : []));
  const found = [
    ...(state.kind === 'invalid'
      ? [failure(formatProblems(state.problems), 'correct the ConfigMap, or say it by shale enable')]
      : []),
    ...(seen.pools.length === 0
      ? [
          warning(
            'there is no MachineConfigPool: no node is managed',
            'create one, such as that of docs/install.md, "Pools"',
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
      : [warning(`no pool has ${named(homeless)}`, 'label the nodes, or let a pool select them')]),
    ...(silent.length === 0
      ? []
      : [
          failure(
            `no daemon has reported from ${named(silent)}`,
            'look at the log of the shale-daemon pod there: it names the backend (bootc, rpm-ostree, ostree) that it lacks',
          ),
        ]),
    ...degraded.map(({ name, what }) =>
      failure(
        `${name} is degraded: ${what ?? ''}`,
        unsupported.has(name)
          ? 'give the node an OS that bootc, rpm-ostree or ostree keeps, or take it out of the pools (docs/os-backends.md)'
          : `shale explain ${name} tells what it was to do`,
      ),
    ),
  ];
  return found.length === 0 ? [ok(`${views.length} nodes report, none is degraded`)] : found;
}

/** The daemon finds none of its backends there (daemon/os/detect-backend.ts). */
function isUnsupported({ status }: MachineConfigNode): boolean {
  const degraded = status?.conditions?.find(({ type }) => type === 'NodeDegraded');
  return degraded?.status === 'True' && degraded.reason === 'UnsupportedHost';
}

function named(nodes: readonly string[]): string {
  const more = nodes.length - NAMED_NODES;
  return `${nodes.slice(0, NAMED_NODES).join(', ')}${more > 0 ? ` and ${more} more nodes` : ''}`;
}
