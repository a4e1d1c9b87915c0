import type { Node, Pod } from '../../api/kubernetes.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import { labels } from '../../api/names.ts';
import { isControlPlane } from '../pools/new-node.ts';
import { isReady } from '../pools/node-availability.ts';
import type { NodeState } from '../pools/node-state.ts';
import type { PoolObservation } from '../pools/pool-observation.ts';
import { workOn } from '../pools/work.ts';
import type { GateInputs } from './gate-inputs.ts';
import type { Hold, StartHold } from './hold.ts';

/** One of those of whom a majority has to be healthy. */
interface Voter {
  /** As messages name it. */
  readonly name: string;
  /** Where it runs; undefined: nowhere. */
  readonly node: string | undefined;
  /** Why it can't be counted on; absent: it is healthy. */
  readonly unhealthy?: string;
}

/** Voters that decide together. */
interface QuorumGroup {
  /** In the plural, for messages. */
  readonly what: string;
  readonly voters: readonly Voter[];
}

/** What shows who votes in a cluster, and who is healthy. */
export interface SeenVoters {
  /** Of the cluster, whatever their pools. */
  readonly nodes: readonly Node[];
  readonly machineConfigNode: (node: string) => MachineConfigNode | undefined;
  /** Pods that vote. */
  readonly pods: readonly Pod[];
}

const NO_QUORUM = 'NoQuorumToSpare';

/** k3s and RKE2 have it on the nodes of etcd, which need not be those of the control plane. */
const ETCD_ROLE = `${labels.nodeRolePrefix}etcd`;

/** @returns whether a node may vote without a pod that shows it. */
export function mayVote(node: Pick<Node, 'metadata'>): boolean {
  return isControlPlane(node) || hasEtcdRole(node);
}

/**
 * Who decides together: the nodes of the control plane, whose API servers serve the cluster, and the members of etcd.
 * Members are pods that vote. A node that should have such a pod and has none is a member that is down: its kubelet
 * may have lost it.
 */
function quorumGroups({ nodes, pods, machineConfigNode }: SeenVoters): readonly QuorumGroup[] {
  const controlPlane = nodes.filter(isControlPlane);
  const health = new Map(nodes.map((node) => [node.metadata.name, whyUnhealthy(node, machineConfigNode)]));
  const voters = pods.map((pod) => podVoter(pod, health, machineConfigNode));
  const hosts = new Set(voters.map(({ node }) => node));
  const etcd = nodes.some(hasEtcdRole)
    ? nodes.filter(hasEtcdRole)
    : controlPlane.some(({ metadata }) => hosts.has(metadata.name))
      ? controlPlane
      : [];
  const bare = etcd.filter(({ metadata }) => !hosts.has(metadata.name));
  const without = pods.length === 0 ? undefined : 'has no pod of etcd';
  return [
    { what: 'control-plane nodes', voters: controlPlane.map((node) => nodeVoter(node, health)) },
    {
      what: 'members of etcd',
      voters: [...voters, ...bare.map((node) => nodeVoter(node, health, without))],
    },
  ];
}

/**
 * Members go one at a time, whatever their pools, and only while a majority of all is healthy without the one that
 * goes. Of one or two, none can be spared: then all others have to be healthy.
 *
 * @returns why the node must not be disrupted now; undefined where it may, and where it doesn't vote.
 */
function quorumHold(groups: readonly QuorumGroup[], node: string): Hold | undefined {
  for (const { what, voters } of groups) {
    const others = voters.filter((voter) => voter.node !== node);
    if (others.length === voters.length) continue;
    const needed = Math.min(Math.floor(voters.length / 2) + 1, others.length);
    const unhealthy = others.filter((voter) => voter.unhealthy !== undefined);
    const isBusy = unhealthy.some((voter) => voter.unhealthy === AT_WORK);
    if (!isBusy && others.length - unhealthy.length >= needed) continue;
    const why = unhealthy.map((voter) => `${voter.name} ${voter.unhealthy}`).join(', ');
    const [be, count] =
      others.length === 1 ? ['is', 'the other one'] : ['are', `the ${others.length} others`];
    return {
      reason: NO_QUORUM,
      message: `no quorum to spare among the ${voters.length} ${what}: ${needed} of ${count} ${be} needed while ${node} is down, and ${why}`,
    };
  }
  return undefined;
}

const AT_WORK = 'is being updated';

/** What votes is drained and rebooted only while the others can decide without it. */
export const quorum = {
  kind: 'disruption',
  reasons: { [NO_QUORUM]: 'others' },
  backsOut: true,
  hold: (
    { gateInputs: { quorum: look } }: Pick<PoolObservation, 'gateInputs'>,
    nodes: readonly NodeState[],
  ): StartHold | undefined => {
    const through: string[] = [];
    const holds = new Map<string, Hold>();
    for (const { name } of nodes) {
      const hold = look?.(name, through);
      if (hold === undefined) through.push(name);
      else holds.set(name, hold);
    }
    const [hold] = holds.values();
    return hold === undefined ? undefined : { hold, held: new Set(holds.keys()) };
  },
} as const;

/** @returns what finds why a node must not be disrupted now, while further nodes are about to be. */
export function quorumAmong(seen: SeenVoters): NonNullable<GateInputs['quorum']> {
  const groups = quorumGroups(seen);
  return (node, withoutThese) => {
    const left = groups.map(({ what, voters }) => ({
      what,
      voters: voters.map((voter) =>
        voter.node !== undefined && withoutThese.includes(voter.node)
          ? { ...voter, unhealthy: AT_WORK }
          : voter,
      ),
    }));
    return quorumHold(left, node);
  };
}

function nodeVoter(
  { metadata: { name } }: Node,
  health: ReadonlyMap<string, string | undefined>,
  lacks?: string,
): Voter {
  const unhealthy = health.get(name) ?? lacks;
  return { name, node: name, ...(unhealthy === undefined ? {} : { unhealthy }) };
}

function podVoter(
  pod: Pod,
  health: ReadonlyMap<string, string | undefined>,
  machineConfigNode: SeenVoters['machineConfigNode'],
): Voter {
  const { metadata, spec } = pod;
  const name = `pod ${metadata.namespace}/${metadata.name}`;
  const node = spec.nodeName;
  const unhealthy =
    node === undefined
      ? whyNotServing(pod)
      : (whyNotServing(pod, machineConfigNode(node)) ?? health.get(node));
  return { name, node, ...(unhealthy === undefined ? {} : { unhealthy }) };
}

function whyNotServing({ metadata, status }: Pod, on?: MachineConfigNode): string | undefined {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  if (ready?.status !== 'True' || metadata.deletionTimestamp !== undefined) return 'is not Ready';
  const since = [
    ready.lastTransitionTime,
    ...(status?.containerStatuses ?? []).map(({ state }) => state?.running?.startedAt),
  ].flatMap((time) => (time === undefined ? [] : [Date.parse(time)]));
  const isOfBootBefore = since.length > 0 && Math.max(...since) < rebootedAfter(on);
  return isOfBootBefore ? `has not been reported since ${on?.metadata.name} rebooted` : undefined;
}

/**
 * The Ready condition of a static pod outlives a reboot that is shorter than the node monitor's grace period: nobody
 * marks the pod until the kubelet has looked at its containers again, and by then the node may be Ready (kubelet,
 * pkg/kubelet/status, which goes on with the status in the API). From then on the containers are of this boot.
 *
 * @returns a moment before the reboot of the node's last update, by the node's own clock, as the times of its pods are;
 *   in ms since the epoch.
 */
function rebootedAfter(node: MachineConfigNode | undefined): number {
  const { bootIDBefore, bootIDAfter, startedAt = '' } = node?.status?.lastUpdate ?? {};
  return bootIDBefore === bootIDAfter ? Number.NEGATIVE_INFINITY : Date.parse(startedAt);
}

function whyUnhealthy(node: Node, machineConfigNode: SeenVoters['machineConfigNode']): string | undefined {
  const object = machineConfigNode(node.metadata.name);
  const work = object === undefined ? undefined : workOn(node, object.spec);
  if (work?.cordon !== undefined || work?.grant === 'Disrupt') return AT_WORK;
  return isReady(node) ? undefined : 'is not Ready';
}

function hasEtcdRole({ metadata }: Pick<Node, 'metadata'>): boolean {
  return metadata.labels?.[ETCD_ROLE] !== undefined;
}
