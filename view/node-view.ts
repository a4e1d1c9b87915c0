import { formatAction, formatAsked } from '../api/disruption-action.ts';
import {
  formatOsBackend,
  type MachineConfigNode,
  type NodeConditionType,
} from '../api/machine-config-node.ts';
import type { Condition } from '../api/object.ts';
import { settingOf } from '../api/pool-settings/read-settings.ts';
import { isUpdate } from '../predict/estimate.ts';
import { poolHold } from '../rollout/gates/gates.ts';
import { rebootsByOthers } from '../rollout/next-boot/reboots-by-others.ts';
import { defaultRolloutOptions } from '../rollout/options.ts';
import { formatDomainWait } from '../rollout/pools/failure-domains.ts';
import { nodeRemark } from '../rollout/pools/node-remark.ts';
import { failuresOn, type NodeState, stateNameOf } from '../rollout/pools/node-state.ts';
import { isAtWork, nodeStep } from '../rollout/pools/node-step.ts';
import { isRollingBack, isStaging } from '../rollout/pools/progress.ts';
import { nodeHolds, settingsOfPool } from './holds.ts';
import {
  type ManagedNodeSource,
  type NodeSource,
  type NodesCluster,
  nodeSource,
  readState,
  seenNode,
} from './node-source.ts';
import { adviceOn } from './retriable.ts';
import type { NodeView } from './schemas.ts';
import { type DomainWait, domainWaits } from './slots.ts';
import type { TimedNode } from './time-left.ts';

/** What is shown of a node is read from its own objects, and from who else takes slots of its pool. */
export interface NodeViewSource extends ManagedNodeSource {
  /** What it waits for in its failure domain. */
  readonly domainWait: DomainWait | undefined;
}

/** @param now ms since the epoch. */
export function nodeView(object: MachineConfigNode, cluster: NodesCluster, now: number): NodeView {
  const { name } = object.metadata;
  const source = { ...nodeSource(name, cluster), machineConfigNode: object };
  return readNodeView({ ...source, domainWait: domainWaits(cluster, now).get(name) }, now);
}

/** @param now ms since the epoch. */
export function readNodeView(source: NodeViewSource, now: number): NodeView {
  const { machineConfigNode, lease, dispute } = source;
  const { metadata, spec, status } = machineConfigNode;
  const seen = seenNode(metadata.name, source, now);
  const state = readState(source, now);
  const obstacle = dispute ?? state.holders[0]?.message;
  const holds = nodeHolds(seen.node, lease, state);
  const [runs, desired] = [status?.configImage?.currentImage, spec.configImage?.desiredImage];
  const plan =
    status?.plan?.config === spec.configVersion.desired && status.plan.image === desired
      ? status.plan
      : undefined;
  const ready = seen.node.status?.conditions?.find(({ type }) => type === 'Ready');
  return {
    name: metadata.name,
    pool: spec.pool.name,
    ...situationOf(source, state, obstacle, now),
    mode: status?.mode,
    osBackend: status?.osBackend && formatOsBackend(status.osBackend),
    config: { current: status?.configVersion?.current || undefined, desired: spec.configVersion.desired },
    image: runs === undefined && desired === undefined ? undefined : { current: runs, desired },
    actions: plan && formatAsked(plan),
    staging: status?.staging,
    nextBoot: status?.plan?.nextBoot || undefined,
    ready: state.ready,
    notReady: state.ready ? undefined : ready?.message || undefined,
    cordoned: !state.schedulable,
    zone: state.zone || undefined,
    domain: domainOf(source),
    fullDomain: source.domainWait,
    // An expired lease still names its last holder.
    leaseHolder: lease?.spec?.holderIdentity || undefined,
    advice: adviceOn(machineConfigNode),
    obstacle,
    holds: holds.length === 0 ? undefined : holds,
  };
}

/** @returns a node as the estimate of a rollout reads it. */
export function timedNode(view: NodeView, { spec, status }: MachineConfigNode): TimedNode {
  const { plan, lastUpdate } = status ?? {};
  const { configVersion, configImage } = spec;
  const last = lastUpdate && isUpdate(lastUpdate) ? lastUpdate : undefined;
  return {
    ...view,
    planned: plan?.actions.map(formatAction),
    last: last && {
      config: last.config,
      start: Date.parse(last.startedAt),
      end: Date.parse(last.finishedAt),
      result: last.result,
      actions: last.actions.map(formatAction),
      ofTarget: last.config === configVersion.desired && last.image === configImage?.desiredImage,
    },
  };
}

type Situation = Pick<NodeView, 'state' | 'since' | 'what' | 'blockedBy' | 'verification'>;

/** What the operator or the daemon can't do on the node is why it comes no further, whatever it waits for. */
function situationOf(
  source: NodeViewSource,
  state: NodeState,
  obstacle: string | undefined,
  now: number,
): Situation {
  const { status } = source.machineConfigNode;
  const name = stateNameOf(state);
  const failing = failuresOn(status?.conditions);
  const own = name === 'degraded' || failing.length === 0 ? whatOf(source, state, obstacle, now) : undefined;
  const what = [own, ...failing].filter((each) => each !== undefined && each !== '').join('; ');
  const blockedBy = name === 'draining' ? status?.drain?.blockedBy : status?.maintenanceDrain?.waitsFor;
  const verification = name === 'verifying' ? status?.verification : undefined;
  return { state: name, since: sinceOf(source, state), what: what || undefined, verification, blockedBy };
}

/** When the state began, as the objects record it. */
function sinceOf({ machineConfigNode, lease }: ManagedNodeSource, state: NodeState): string | undefined {
  const { metadata, status } = machineConfigNode;
  const at = (type: NodeConditionType) => conditionOf(status?.conditions, type)?.lastTransitionTime;
  const taken = state.lease.by === 'us' ? lease?.spec?.acquireTime : undefined;
  const name = stateNameOf(state);
  switch (name) {
    case 'updated':
      return status?.lastUpdate?.finishedAt ?? at('Updated');
    case 'degraded':
      return at('NodeDegraded');
    case 'rebooting':
    case 'verifying':
      return state.stage?.condition.lastTransitionTime;
    case 'applying':
      return state.stage?.condition.lastTransitionTime ?? at('Drained') ?? taken ?? at('UpdatePrepared');
    case 'draining':
      return taken ?? at('Cordoned') ?? at('Drained') ?? at('UpdatePrepared');
    case 'staging': {
      // UpdatePrepared is False between two targets too; Updated became so as the target was assigned.
      const updated = conditionOf(status?.conditions, 'Updated');
      if (updated?.status === 'False') return updated.lastTransitionTime;
      const prepared = conditionOf(status?.conditions, 'UpdatePrepared');
      return isStaging(prepared) ? prepared.lastTransitionTime : metadata.creationTimestamp;
    }
    case 'staged':
      return at('UpdatePrepared');
    case 'silent':
    case 'unmanaged':
      return metadata.creationTimestamp;
  }
}

/** What the node does or waits for. The operator's remark costs more than the rest, so it is asked for last. */
function whatOf(
  source: NodeViewSource,
  state: NodeState,
  obstacle: string | undefined,
  now: number,
): string | undefined {
  const { conditions } = source.machineConfigNode.status ?? {};
  const { progress, stage } = state;
  const remark = () => (source.node === undefined ? undefined : remarkOn(source, state, now));
  const name = stateNameOf(state);
  switch (name) {
    case 'degraded': {
      const back = isRollingBack(stage) ? stage?.condition.message : undefined;
      return [back, 'why' in progress ? progress.why : undefined].filter(Boolean).join(': ');
    }
    case 'silent':
      return 'why' in progress ? progress.why : undefined;
    case 'updated':
      return isAtWork(state) ? remark() : undefined;
    case 'rebooting':
      return stage?.condition.message;
    case 'verifying':
      return source.machineConfigNode.status?.verification?.waitsFor ?? stage?.condition.message;
    case 'applying':
      return stage?.condition.message ?? 'permission granted';
    case 'staging':
      return remark() ?? ('why' in progress ? progress.why : undefined);
    case 'draining':
      return conditionOf(conditions, 'Drained')?.message ?? remark();
    case 'staged':
      if (obstacle !== undefined) return `skipped: ${obstacle}`;
      return (
        remark() ??
        closedBecause(source) ??
        domainRemark(source) ??
        heldBecause(source) ??
        conditionOf(conditions, 'UpdatePrepared')?.message
      );
    case 'unmanaged':
      return undefined;
  }
}

/** What the node waits for, as the operator decides it from the same objects. */
function remarkOn(
  { machineConfigNode: { status }, pool }: ManagedNodeSource,
  state: NodeState,
  now: number,
): string | undefined {
  const settings = pool === undefined ? undefined : settingsOfPool(pool);
  const context = {
    closed: pool === undefined || settings === undefined ? undefined : poolHold({ pool, settings })?.message,
    patience: defaultRolloutOptions.degradedPatienceSeconds * 1000,
    unhealthyAfter: settings?.unhealthyAfter ?? defaultRolloutOptions.unhealthyAfterSeconds * 1000,
    now,
  };
  const remark = nodeRemark(state, nodeStep(state, context));
  if (remark !== undefined || settings === undefined || status?.plan?.nextBoot === true) return remark;
  return rebootsByOthers.hold({ settings }, state)?.message;
}

/** Nothing starts in a pool that somebody closed, or that failed nodes have stopped. */
function closedBecause({ pool }: NodeViewSource): string | undefined {
  if (pool === undefined) return undefined;
  const hold = poolHold({ pool, settings: settingsOfPool(pool) });
  if (hold !== undefined) return `waits: ${hold.message}`;
  const updating = pool.status?.conditions?.find(({ type }) => type === 'Updating');
  return CLOSED_BY[updating?.reason ?? ''];
}

/** What nodes wait for, by the reason of the pool's condition Updating. */
const CLOSED_BY: Readonly<Partial<Record<string, string>>> = {
  RolloutStopped: 'waits: the rollout has stopped',
  AwaitingMaintenanceWindow: 'waits: the maintenance window is closed',
};

function domainRemark({ domainWait }: NodeViewSource): string | undefined {
  return domainWait && formatDomainWait(domainWait);
}

/** @returns the label that says with which nodes it fails together; undefined where its pool doesn't ask. */
function domainOf({ node, pool }: NodeSource): string | undefined {
  const domains = pool && settingOf(pool, 'failureDomains');
  return domains && (node?.metadata.labels?.[domains.topologyKey] ?? '');
}

/** What the pool's nodes wait for that have staged their target, as the operator reports it: alerts are no objects. */
function heldBecause({ pool }: ManagedNodeSource): string | undefined {
  const held = pool?.status?.conditions?.find(({ type }) => type === 'UpdatesHeld');
  return held?.status === 'True' ? `held: ${held.message}` : undefined;
}

function conditionOf(
  conditions: readonly Condition[] | undefined,
  type: NodeConditionType,
): Condition | undefined {
  return conditions?.find((each) => each.type === type);
}
