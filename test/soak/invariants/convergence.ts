import { outcomeOf } from '../../../api/build-outcome.ts';
import type { Lease, Node } from '../../../api/kubernetes.ts';
import type { MachineConfig } from '../../../api/machine-config.ts';
import type { MachineConfigNode } from '../../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../../api/machine-config-pool.ts';
import type { MachineOSBuild } from '../../../api/machine-os-build.ts';
import { annotations } from '../../../api/names.ts';
import { conditionIsTrue } from '../../../cluster/update-object.ts';
import type { CalmEvent, EditEvent, History } from '../history/history.ts';
import { type PastCluster, replay } from '../history/replay.ts';
import type { Violation } from './violation.ts';

/** By which Shale keeps others from a node that it works on; nobody else in a campaign writes them. */
const FOR_NEIGHBOURS = [
  'cluster-autoscaler.kubernetes.io/scale-down-disabled',
  'karpenter.sh/do-not-disrupt',
];

/** After the faults everything is as the last edits say, and nothing is left to do. */
export function checkConvergence(history: History): readonly Violation[] {
  const edits = new Map<string, EditEvent>();
  const violations: Violation[] = [];
  for (const { event, cluster } of replay(history)) {
    if (event.what === 'edit') edits.set(event.machineConfig, event);
    if (event.what !== 'calm') continue;
    const left = leftToDo(cluster, event.mode, [...edits.values()]);
    violations.push(...left.map((message) => ({ invariant: 'convergence', at: event.at, message })));
  }
  return violations;
}

/**
 * @param edits the last of each MachineConfig.
 * @returns what is not as it will be once every process has done its work, one line each; none where nothing is left.
 */
export function leftToDo(
  cluster: PastCluster,
  mode: CalmEvent['mode'],
  edits: readonly EditEvent[],
): readonly string[] {
  const pools = cluster.list<MachineConfigPool>('MachineConfigPool');
  const nodes = cluster.list<MachineConfigNode>('MachineConfigNode');
  const builds = cluster
    .list<MachineOSBuild>('MachineOSBuild')
    .filter((build) => outcomeOf(build) === undefined);
  const leases = cluster.list<Lease>('Lease').filter(({ metadata }) => metadata.name.startsWith('node-'));
  const cordoned = cluster
    .list<Node>('Node')
    .filter(
      ({ metadata: { annotations: on } }) =>
        on?.[annotations.cordonedByShale] !== undefined ||
        on?.[annotations.disruptionBlocked] !== undefined ||
        FOR_NEIGHBOURS.some((annotation) => on?.[annotation] !== undefined),
    );
  return [
    ...pools.flatMap((pool) => leftInPool(cluster, pool, edits)),
    ...nodes.flatMap((node) => leftOnNode(cluster, node, mode)),
    ...builds.map(({ metadata }) => `build ${metadata.name} has not ended`),
    ...leases.map(({ metadata }) => `lease ${metadata.name} is still there`),
    ...nodes
      .filter(({ metadata }) => cluster.node(metadata.name) === undefined)
      .map(({ metadata }) => `MachineConfigNode ${metadata.name} is left of a node that is gone`),
    ...cordoned.map(({ metadata }) => `node ${metadata.name} is still cordoned, or kept from others`),
  ];
}

function leftInPool(
  cluster: PastCluster,
  { metadata, spec, status }: MachineConfigPool,
  edits: readonly EditEvent[],
): readonly string[] {
  const rendered = cluster.get<MachineConfig>('MachineConfig', spec.configuration?.name ?? '');
  const text = JSON.stringify(rendered?.spec ?? '');
  const sources = new Set(spec.configuration?.source?.map(({ name }) => name));
  const missing = edits.filter(
    ({ machineConfig, token }) => sources.has(machineConfig) && !text.includes(token),
  );
  return [
    ...missing.map(
      ({ machineConfig, token }) =>
        `pool ${metadata.name}: ${spec.configuration?.name} lacks the last edit ${token} of ${machineConfig}`,
    ),
    ...(conditionIsTrue(status?.conditions, 'Updated') ? [] : [`pool ${metadata.name} is not Updated`]),
    ...(conditionIsTrue(status?.conditions, 'Degraded') ? [`pool ${metadata.name} is Degraded`] : []),
    ...(status?.heldNodes ?? []).map(
      ({ name, why }) => `pool ${metadata.name} says that ${name} is held: ${why}`,
    ),
    ...(status?.updatingNodes ?? []).map((name) => `pool ${metadata.name} says that ${name} is at work`),
  ];
}

function leftOnNode(
  cluster: PastCluster,
  { metadata, spec, status }: MachineConfigNode,
  mode: CalmEvent['mode'],
): readonly string[] {
  const pool = cluster.get<MachineConfigPool>('MachineConfigPool', spec.pool.name);
  const config = pool?.spec.configuration?.name;
  const current = status?.configVersion?.current;
  const name = `node ${metadata.name}`;
  const problems: readonly (readonly [boolean, string])[] = [
    [current !== config, `${name} runs ${current}, not ${config} of pool ${spec.pool.name}`],
    [status?.mode !== mode, `${name} is in mode ${status?.mode}, not ${mode}`],
    [
      mode === 'Layered' && status?.configImage?.currentImage !== spec.configImage?.desiredImage,
      `${name} runs ${status?.configImage?.currentImage}, not ${spec.configImage?.desiredImage}`,
    ],
    [!conditionIsTrue(status?.conditions, 'Updated'), `${name} is not Updated`],
    [spec.grant !== undefined, `${name} still has a grant`],
    [spec.heldBy !== undefined, `${name} is still told that it is held: ${spec.heldBy}`],
  ];
  return problems.flatMap(([is, problem]) => (is ? [problem] : []));
}
