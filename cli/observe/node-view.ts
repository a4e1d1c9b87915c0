import { formatAsked } from '../../api/disruption-action.ts';
import type { Lease, Node } from '../../api/kubernetes.ts';
import {
  formatOsBackend,
  type MachineConfigNode,
  type NodeConditionType,
} from '../../api/machine-config-node.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { annotations } from '../../api/names.ts';
import { type Condition, isReported } from '../../api/object.ts';
import { present } from '../../api/present.ts';
import { holdersOf, poolHold } from '../../rollout/gates/gates.ts';
import { rebootsByOthers } from '../../rollout/gates/reboots-by-others.ts';
import { holdingOf, leaseNameOf } from '../../rollout/node-leases.ts';
import { defaultRolloutOptions } from '../../rollout/options.ts';
import { hookRequestOn } from '../../rollout/pools/hooks.ts';
import { nodeRemark } from '../../rollout/pools/node-remark.ts';
import { failuresOn, readNode } from '../../rollout/pools/node-state.ts';
import { nodeStep } from '../../rollout/pools/node-step.ts';
import { type PoolSettings, poolSettings } from '../../rollout/pools/pool-settings.ts';
import { isStaging, progressOf } from '../../rollout/pools/progress.ts';
import type { ShownNodeState } from '../command-line/output-schemas.ts';
import { objectNamed } from './named.ts';
import { disputeOn, type ObservedCluster, obstacleOf } from './observed-cluster.ts';

/** One node in `shale status`. */
export interface NodeView {
  readonly name: string;
  readonly pool: string;
  readonly state: ShownNodeState;
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
  /** Why it is not ready, in the words of its Node. */
  readonly notReady?: string;
  readonly cordoned: boolean;
  readonly leaseHolder?: string;
  /** Why a rollout skips the node now. */
  readonly obstacle?: string;
}

/** @param now ms since the epoch. */
export function nodeView(object: MachineConfigNode, cluster: ObservedCluster, now: number): NodeView {
  const { metadata, spec, status } = object;
  const { name } = metadata;
  const node = objectNamed(cluster.nodes, name);
  const obstacle = disputeOn(cluster, name) ?? obstacleOf(cluster, name, now);
  const leaseHolder = holderOf(cluster, name);
  const { current, desired } = {
    current: status?.configImage?.currentImage,
    desired: spec.configImage?.desiredImage,
  };
  const isOfTarget = status?.plan?.config === spec.configVersion.desired && status.plan.image === desired;
  const plan = isOfTarget ? status.plan : undefined;
  const ready = node?.status?.conditions?.find(({ type }) => type === 'Ready');
  const isReady = ready?.status === 'True';
  const runs = status?.configVersion?.current ?? '';
  return {
    name,
    pool: spec.pool.name,
    ...situationOf(
      object,
      node,
      () =>
        node === undefined
          ? undefined
          : (remarkOn(object, node, cluster, now) ?? heldBecause(object, cluster)),
      obstacle,
    ),
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
    ready: isReady,
    ...(isReady ? {} : present({ notReady: ready?.message || undefined })),
    cordoned: node?.spec?.unschedulable === true,
    ...present({ leaseHolder, obstacle }),
  };
}

type Situation = Pick<NodeView, 'state' | 'since' | 'what'>;

/** What the operator or the daemon can't do on the node is why it comes no further, whatever it waits for. */
function situationOf(
  object: MachineConfigNode,
  node: Node | undefined,
  remarkOnIt: () => string | undefined,
  obstacle: string | undefined,
): Situation {
  const situation = progressOn(object, node, remarkOnIt, obstacle);
  const failing = failuresOn(object.status?.conditions);
  if (failing.length === 0) return situation;
  const own = situation.state === 'degraded' ? [situation.what ?? ''] : [];
  return { ...situation, what: [...own, ...failing].join('; ') };
}

/** @param remarkOnIt what the node waits for: it costs more than all the rest, and of most nodes nobody asks. */
function progressOn(
  { spec, status }: MachineConfigNode,
  node: Node | undefined,
  remarkOnIt: () => string | undefined,
  obstacle: string | undefined,
): Situation {
  const condition = (type: NodeConditionType) => status?.conditions?.find((entry) => entry.type === type);
  const progress = progressOf(spec, status);
  const [rebooting, executed, prepared] = [
    condition('RebootedNode'),
    condition('UpdateExecuted'),
    condition('UpdatePrepared'),
  ];
  if (status?.conditions === undefined || !isReported(status)) {
    return { state: 'silent', what: 'the daemon has not reported yet' };
  }
  if (progress.kind === 'degraded') return withCondition('degraded', condition('NodeDegraded'));
  if (progress.kind === 'updated') {
    const since = status.lastUpdate?.finishedAt ?? condition('Updated')?.lastTransitionTime;
    const isHeld = node !== undefined && hookRequestOn(node) !== undefined;
    return { state: 'updated', ...present({ since, what: isHeld ? remarkOnIt() : undefined }) };
  }
  if (rebooting?.status === 'Unknown') return withCondition('rebooting', rebooting);
  if (executed?.status === 'Unknown') return withCondition('applying', executed);
  // UpdatePrepared may still be about the previous target.
  if (progress.kind === 'preparing') {
    const situation = withCondition('staging', isStaging(prepared) ? prepared : undefined, remarkOnIt());
    // UpdatePrepared is False between two targets too, so the time is that of the last change of Updated.
    const updated = condition('Updated');
    return updated?.status === 'False' ? { ...situation, since: updated.lastTransitionTime } : situation;
  }
  if (spec.grant !== undefined) return withCondition('applying', undefined, 'permission granted');
  const draining = node?.metadata.annotations?.[annotations.cordonedByShale] !== undefined;
  const waitsFor = obstacle === undefined ? remarkOnIt() : `skipped: ${obstacle}`;
  return draining
    ? withCondition(
        'draining',
        condition('Drained'),
        condition('Drained') === undefined ? remarkOnIt() : undefined,
      )
    : withCondition('staged', prepared, waitsFor);
}

/** @param what replaces the condition's message. */
function withCondition(state: ShownNodeState, condition: Condition | undefined, what?: string): Situation {
  const text = what ?? condition?.message ?? '';
  return {
    state,
    ...present({ since: condition?.lastTransitionTime }),
    ...(text === '' ? {} : { what: text }),
  };
}

/** Of a pool as it was observed: its annotations are parsed once, not for each of its nodes. */
const settingsOfPools = new WeakMap<MachineConfigPool, PoolSettings>();

function settingsOf(pool: MachineConfigPool): PoolSettings {
  const settings = settingsOfPools.get(pool) ?? poolSettings(pool, defaultRolloutOptions);
  settingsOfPools.set(pool, settings);
  return settings;
}

/** What the node waits for, as the operator decides it from the same objects. */
function remarkOn(
  { metadata, spec, status }: MachineConfigNode,
  node: Node,
  cluster: ObservedCluster,
  now: number,
): string | undefined {
  const { name } = metadata;
  const seen = {
    node,
    lease: holdingOf(leaseOf(cluster, name), defaultRolloutOptions.leaseHolder, now),
    inMaintenance: cluster.inMaintenance.has(name),
  };
  const state = readNode({ ...seen, holders: holdersOf(seen, now), spec, status, assigned: true });
  const pool = objectNamed(cluster.pools, spec.pool.name);
  const settings = pool === undefined ? undefined : settingsOf(pool);
  const context = {
    closed: pool === undefined || settings === undefined ? undefined : poolHold({ pool, settings })?.message,
    patience: defaultRolloutOptions.degradedPatienceSeconds * 1000,
    unhealthyAfter: settings?.unhealthyAfter ?? defaultRolloutOptions.unhealthyAfterSeconds * 1000,
    now,
  };
  const left = settings === undefined ? undefined : rebootsByOthers.hold({ settings }, state)?.message;
  const step = nodeStep(state, context);
  return nodeRemark(state, step) ?? (status?.plan?.nextBoot === true ? undefined : left);
}

/** What the pool's nodes wait for that have staged their target, as the operator reports it: alerts are no objects. */
function heldBecause({ spec, status }: MachineConfigNode, { pools }: ObservedCluster): string | undefined {
  if (progressOf(spec, status).kind !== 'staged') return undefined;
  const conditions = objectNamed(pools, spec.pool.name)?.status?.conditions;
  const held = conditions?.find(({ type }) => type === 'UpdatesHeld');
  return held?.status === 'True' ? `held: ${held.message}` : undefined;
}

/** An expired lease still names its last holder; obstacleOf ignores it. */
function holderOf(cluster: ObservedCluster, node: string): string | undefined {
  const holder = leaseOf(cluster, node)?.spec?.holderIdentity;
  return holder === '' ? undefined : holder;
}

function leaseOf({ leases }: ObservedCluster, node: string): Lease | undefined {
  return leases && objectNamed(leases, leaseNameOf(node));
}
