import { formatAsked } from '../../api/disruption-action.ts';
import type { Node } from '../../api/kubernetes.ts';
import type { MachineConfigNode, NodeConditionType } from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import type { Condition } from '../../api/object.ts';
import { present } from '../../api/present.ts';
import { leaseNameOf } from '../../rollout/node-leases.ts';
import { progressOf } from '../../rollout/pools/node-state.ts';
import { formatOsBackend } from '../command-line/output.ts';
import type { NodeState } from '../command-line/output-schemas.ts';
import { type ObservedCluster, obstacleOf } from './observed-cluster.ts';

/** One node in `shale status`. */
export interface NodeView {
  readonly name: string;
  readonly pool: string;
  readonly state: NodeState;
  /** RFC 3339; absent when the objects don't record it. */
  readonly since?: string;
  /** What the node is doing or waiting for. */
  readonly what?: string;
  readonly mode?: 'Standard' | 'Layered';
  /** The backend of its operating system, with its version. */
  readonly osBackend?: string;
  readonly config: { readonly current?: string; readonly desired: string };
  readonly image?: { readonly current?: string; readonly desired?: string };
  /** The actions that the target requires, as text. */
  readonly actions?: string;
  readonly staging?: { readonly bytesDone: number; readonly bytesTotal: number };
  readonly ready: boolean;
  readonly cordoned: boolean;
  readonly leaseHolder?: string;
  /** Why a rollout skips the node now. */
  readonly obstacle?: string;
}

/** @param now ms since the epoch. */
export function nodeView(object: MachineConfigNode, cluster: ObservedCluster, now: number): NodeView {
  const { metadata, spec, status } = object;
  const { name } = metadata;
  const node = cluster.nodes.find((candidate) => candidate.metadata.name === name);
  const obstacle = obstacleOf(cluster, name, now);
  const leaseHolder = holderOf(cluster, name);
  const { current, desired } = {
    current: status?.configImage?.currentImage,
    desired: spec.configImage?.desiredImage,
  };
  const isOfTarget = status?.plan?.config === spec.configVersion.desired && status.plan.image === desired;
  const plan = isOfTarget ? status.plan : undefined;
  const runs = status?.configVersion?.current ?? '';
  return {
    name,
    pool: spec.pool.name,
    ...situationOf(object, node, remarkOnNode(object, cluster), obstacle),
    ...present({ mode: status?.mode }),
    ...(status?.osBackend === undefined ? {} : { osBackend: formatOsBackend(status.osBackend) }),
    config: { ...(runs === '' ? {} : { current: runs }), desired: spec.configVersion.desired },
    ...(current === undefined && desired === undefined
      ? {}
      : {
          image: {
            ...present({ current, desired }),
          },
        }),
    ...(plan === undefined ? {} : { actions: formatAsked(plan) }),
    ...present({ staging: status?.staging }),
    ready:
      node?.status?.conditions?.some((entry) => entry.type === 'Ready' && entry.status === 'True') ?? false,
    cordoned: node?.spec?.unschedulable === true,
    ...present({ leaseHolder, obstacle }),
  };
}

type Situation = Pick<NodeView, 'state' | 'since' | 'what'>;

function situationOf(
  { spec, status }: MachineConfigNode,
  node: Node | undefined,
  remark: string | undefined,
  obstacle: string | undefined,
): Situation {
  const condition = (type: NodeConditionType) => status?.conditions?.find((entry) => entry.type === type);
  const progress = progressOf(spec, status);
  const [rebooting, executed, prepared] = [
    condition('RebootedNode'),
    condition('UpdateExecuted'),
    condition('UpdatePrepared'),
  ];
  if (status?.conditions === undefined) return { state: 'silent', what: 'the daemon has not reported yet' };
  if (progress.kind === 'degraded') return withCondition('degraded', condition('NodeDegraded'));
  if (progress.kind === 'updated') {
    const since = status.lastUpdate?.finishedAt ?? condition('Updated')?.lastTransitionTime;
    return { state: 'updated', ...present({ since }) };
  }
  if (rebooting?.status === 'Unknown') return withCondition('rebooting', rebooting);
  if (executed?.status === 'Unknown') return withCondition('applying', executed);
  // UpdatePrepared may still be about the previous target.
  if (progress.kind === 'preparing') {
    const situation = withCondition('staging', prepared?.status === 'False' ? prepared : undefined, remark);
    // UpdatePrepared is False between two targets too, so the time is that of the last change of Updated.
    const updated = condition('Updated');
    return updated?.status === 'False' ? { ...situation, since: updated.lastTransitionTime } : situation;
  }
  // The pool's remark is older than the grant: it is about the drain before.
  if (spec.grant !== undefined) return withCondition('applying', undefined, 'permission granted');
  const draining = node?.metadata.annotations?.[annotations.cordonedByShale] !== undefined;
  const waitsFor = obstacle === undefined ? remark : `skipped: ${obstacle}`;
  return draining
    ? withCondition('draining', undefined, remark)
    : withCondition('staged', prepared, waitsFor);
}

/** @param what replaces the condition's message. */
function withCondition(state: NodeState, condition: Condition | undefined, what?: string): Situation {
  const text = what ?? condition?.message ?? '';
  return {
    state,
    ...present({ since: condition?.lastTransitionTime }),
    ...(text === '' ? {} : { what: text }),
  };
}

function remarkOnNode({ metadata, spec }: MachineConfigNode, cluster: ObservedCluster): string | undefined {
  const pool = cluster.pools.find(({ metadata: { name } }) => name === spec.pool.name);
  const message = pool?.status?.conditions?.find(({ type }) => type === 'Updating')?.message ?? '';
  if (!message.includes(`${metadata.name}: `)) return undefined;
  const names = cluster.machineConfigNodes.filter((other) => other.spec.pool.name === spec.pool.name);
  return remarkOn(message, metadata.name, new Set(names.map((other) => other.metadata.name)));
}

/** An expired lease still names its last holder; obstacleOf ignores it. */
function holderOf({ leases }: ObservedCluster, node: string): string | undefined {
  const holder = leases?.find(({ metadata }) => metadata.name === leaseNameOf(node))?.spec?.holderIdentity;
  return holder === '' ? undefined : holder;
}

/**
 * Finds the remark about a node in the message of a pool's condition Updating. The operator joins remarks, each of which
 * starts with the name of a node, with `; ` (rollout/pools/pool-status.ts); a remark may contain that separator too.
 *
 * @param nodes names of the pool's nodes, which mark the start of the next remark.
 * @returns undefined when the message has no remark about the node.
 */
export function remarkOn(message: string, node: string, nodes: ReadonlySet<string>): string | undefined {
  const parts = message.split('; ');
  const subjectOf = (part: string) => {
    const name = part.slice(0, Math.max(0, part.indexOf(': ')));
    return nodes.has(name) ? name : undefined;
  };
  const first = parts.findIndex((part) => subjectOf(part) === node);
  if (first === -1) return undefined;
  const rest = parts.slice(first + 1);
  const next = rest.findIndex((part) => subjectOf(part) !== undefined || /^and \d+ more$/.test(part));
  const remark = [parts[first]?.slice(node.length + 2) ?? '', ...(next === -1 ? rest : rest.slice(0, next))];
  return remark.join('; ');
}
