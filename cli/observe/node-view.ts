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

/** One node as `shale status` tells of it. */
export interface NodeView {
  readonly name: string;
  readonly pool: string;
  readonly state: NodeState;
  /** RFC 3339; absent where the objects don't tell. */
  readonly since?: string;
  /** What goes on or is waited for, in words. */
  readonly what?: string;
  readonly mode?: 'Standard' | 'Layered';
  /** The tool that keeps its operating system, with its version. */
  readonly osBackend?: string;
  readonly config: { readonly current?: string; readonly desired: string };
  readonly image?: { readonly current?: string; readonly desired?: string };
  /** What the target asks of the node, in words. */
  readonly actions?: string;
  readonly staging?: { readonly bytesDone: number; readonly bytesTotal: number };
  readonly ready: boolean;
  readonly cordoned: boolean;
  readonly leaseHolder?: string;
  /** Why a rollout passes the node by now. */
  readonly obstacle?: string;
}

/** @param now ms since the epoch. */
export function nodeView(object: MachineConfigNode, seen: ObservedCluster, now: number): NodeView {
  const { metadata, spec, status } = object;
  const { name } = metadata;
  const node = seen.nodes.find((candidate) => candidate.metadata.name === name);
  const obstacle = obstacleOf(seen, name, now);
  const leaseHolder = holderOf(seen, name);
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
    ...situationOf(object, node, remarkOnNode(object, seen), obstacle),
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
      node?.status?.conditions?.some((found) => found.type === 'Ready' && found.status === 'True') ?? false,
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
  const condition = (type: NodeConditionType) => status?.conditions?.find((found) => found.type === type);
  const progress = progressOf(spec, status);
  const [rebooting, executed, prepared] = [
    condition('RebootedNode'),
    condition('UpdateExecuted'),
    condition('UpdatePrepared'),
  ];
  if (status?.conditions === undefined) return { state: 'silent', what: 'the daemon has not reported yet' };
  if (progress.kind === 'degraded') return said('degraded', condition('NodeDegraded'));
  if (progress.kind === 'updated') {
    const since = status.lastUpdate?.finishedAt ?? condition('Updated')?.lastTransitionTime;
    return { state: 'updated', ...present({ since }) };
  }
  if (rebooting?.status === 'Unknown') return said('rebooting', rebooting);
  if (executed?.status === 'Unknown') return said('applying', executed);
  // What the daemon last said of being prepared may be of the target before.
  if (progress.kind === 'preparing') {
    const told = said('staging', prepared?.status === 'False' ? prepared : undefined, remark);
    // Between two targets it is not prepared either: the time is from when the node was done with the one before.
    const updated = condition('Updated');
    return updated?.status === 'False' ? { ...told, since: updated.lastTransitionTime } : told;
  }
  // The pool's remark is older than the leave: it tells of the drain before.
  if (spec.grant !== undefined) return said('applying', undefined, 'permission granted');
  const draining = node?.metadata.annotations?.[annotations.cordonedByShale] !== undefined;
  const waitsFor = obstacle === undefined ? remark : `skipped: ${obstacle}`;
  return draining ? said('draining', undefined, remark) : said('staged', prepared, waitsFor);
}

/** @param what in place of the condition's own words. */
function said(state: NodeState, condition: Condition | undefined, what?: string): Situation {
  const words = what ?? condition?.message ?? '';
  return {
    state,
    ...present({ since: condition?.lastTransitionTime }),
    ...(words === '' ? {} : { what: words }),
  };
}

function remarkOnNode({ metadata, spec }: MachineConfigNode, seen: ObservedCluster): string | undefined {
  const pool = seen.pools.find(({ metadata: { name } }) => name === spec.pool.name);
  const message = pool?.status?.conditions?.find(({ type }) => type === 'Updating')?.message ?? '';
  if (!message.includes(`${metadata.name}: `)) return undefined;
  const names = seen.machineConfigNodes.filter((other) => other.spec.pool.name === spec.pool.name);
  return remarkOn(message, metadata.name, new Set(names.map((other) => other.metadata.name)));
}

/** An expired lease still names its last holder; obstacleOf is what counts it out. */
function holderOf({ leases }: ObservedCluster, node: string): string | undefined {
  const holder = leases?.find(({ metadata }) => metadata.name === leaseNameOf(node))?.spec?.holderIdentity;
  return holder === '' ? undefined : holder;
}

/**
 * What a pool's condition Updating says of one node. The operator joins its remarks, each begun by the node's name, with
 * `; ` (rollout/pools/pool-status.ts), and a remark may hold that itself.
 *
 * @param nodes names of the pool's nodes: where the next remark begins.
 * @returns undefined when it says nothing of the node.
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
