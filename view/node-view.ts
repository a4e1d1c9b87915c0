import { formatAction, formatAsked } from '../api/disruption-action.ts';
import {
  formatOsBackend,
  type MachineConfigNode,
  type NodeConditionType,
} from '../api/machine-config-node.ts';
import { formatMachine, formatMachineOwner } from '../api/machine-owner.ts';
import { settingOf } from '../api/pool-settings/read-settings.ts';
import { isUpdate } from '../predict/estimate.ts';
import { drivenBy } from '../rollout/gates/driven-by.ts';
import { poolHold } from '../rollout/gates/gates.ts';
import type { SeenNode } from '../rollout/gates/seen-node.ts';
import { rebootsByOthers } from '../rollout/next-boot/reboots-by-others.ts';
import { defaultRolloutOptions } from '../rollout/options.ts';
import { formatDomainWait } from '../rollout/pools/failure-domains.ts';
import { nodeMessage } from '../rollout/pools/node-message.ts';
import { type NodeState, stateNameOf } from '../rollout/pools/node-state.ts';
import { isAtWork, nodeStep } from '../rollout/pools/node-step.ts';
import { isRollingBack, isStaging } from '../rollout/pools/progress.ts';
import { failuresOn } from '../rollout/pools/update-state.ts';
import { conditionOf, trueCondition } from './conditions.ts';
import { nodeHolds, settingsOfPool } from './holds.ts';
import { type ManagedNodeSource, type NodesCluster, nodeSource, readState, seenNode } from './node-source.ts';
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

/** A node as its objects show it at one moment, and as the operator's deciders see it. */
interface NodeReading extends NodeViewSource {
  readonly seen: SeenNode;
  readonly state: NodeState;
  /** Why a rollout skips it, as text. */
  readonly obstacle: string | undefined;
  /** ms since the epoch. */
  readonly now: number;
}

/** @param now ms since the epoch. */
export function readNodeView(source: NodeViewSource, now: number): NodeView {
  const { metadata, spec } = source.machineConfigNode;
  const seen = seenNode(metadata.name, source, now);
  const state = readState(source, now);
  const obstacle = source.dispute ?? state.claims.holders[0]?.message;
  const reading: NodeReading = { ...source, seen, state, obstacle, now };
  return {
    name: metadata.name,
    pool: spec.pool.name,
    ...situationOf(reading),
    ...targetOf(reading),
    ...availabilityOf(reading),
    handedOver: handoverIn(reading),
    ...obstaclesTo(reading),
  };
}

/** What the node runs, and what its target requires. */
function targetOf({ machineConfigNode }: NodeReading) {
  const { spec, status } = machineConfigNode;
  const [runs, desired] = [status?.configImage?.currentImage, spec.configImage?.desiredImage];
  const isForTarget = status?.plan?.config === spec.configVersion.desired && status.plan.image === desired;
  const plan = isForTarget ? status.plan : undefined;
  return {
    mode: status?.mode,
    osBackend: status?.osBackend && formatOsBackend(status.osBackend),
    config: { current: status?.configVersion?.current || undefined, desired: spec.configVersion.desired },
    image: runs === undefined && desired === undefined ? undefined : { current: runs, desired },
    actions: plan && formatAsked(plan),
    staging: status?.staging,
    nextBoot: status?.plan?.nextBoot || undefined,
  };
}

/** Whether pods run on the node, and which nodes fail together with it. */
function availabilityOf({ node, pool, seen, state, domainWait }: NodeReading) {
  const ready = conditionOf(seen.node.status?.conditions, 'Ready');
  const domains = pool && settingOf(pool, 'failureDomains');
  return {
    ready: state.availability.ready,
    notReady: state.availability.ready ? undefined : ready?.message || undefined,
    cordoned: !state.availability.schedulable,
    zone: state.zone || undefined,
    domain: domains && (node?.metadata.labels?.[domains.topologyKey] ?? ''),
    fullDomain: domainWait,
  };
}

/** One that can't be read is told by what the node waits for. */
function handoverIn({ state: { claims } }: NodeReading): NodeView['handedOver'] {
  const { handover } = claims;
  if (handover?.kind !== 'by') return undefined;
  const { owner, machine, at } = handover.update;
  return { owner: formatMachineOwner(owner), machine: formatMachine(machine), since: at };
}

/** Who or what keeps the node from its target, and what to do about it. */
function obstaclesTo({ machineConfigNode, seen, state, lease, obstacle }: NodeReading) {
  const holds = nodeHolds(seen.node, lease, state.claims);
  return {
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

/** What the operator or the daemon can't do on the node is why it comes no further, whatever it waits for. */
function situationOf(reading: NodeReading) {
  const { status } = reading.machineConfigNode;
  const name = stateNameOf(reading.state);
  const failing = failuresOn(status?.conditions);
  const own = name === 'degraded' || failing.length === 0 ? whatOf(reading) : undefined;
  const what = [own, ...failing].filter((each) => each !== undefined && each !== '').join('; ');
  const blockedBy = name === 'draining' ? status?.drain?.blockedBy : status?.maintenanceDrain?.waitsFor;
  const verification = name === 'verifying' ? status?.verification : undefined;
  return { state: name, since: sinceOf(reading), what: what || undefined, verification, blockedBy };
}

/** When the state began, as the objects record it. */
function sinceOf({ machineConfigNode, lease, state }: NodeReading): string | undefined {
  const { metadata, status } = machineConfigNode;
  const at = (type: NodeConditionType) => conditionOf(status?.conditions, type)?.lastTransitionTime;
  const taken = state.claims.lease.by === 'us' ? lease?.spec?.acquireTime : undefined;
  const name = stateNameOf(state);
  switch (name) {
    case 'updated':
      return status?.lastUpdate?.finishedAt ?? at('Updated');
    case 'degraded':
      return at('NodeDegraded');
    case 'rebooting':
    case 'verifying':
      return state.update.stage?.condition.lastTransitionTime;
    case 'applying':
      return (
        state.update.stage?.condition.lastTransitionTime ?? at('Drained') ?? taken ?? at('UpdatePrepared')
      );
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
function whatOf(reading: NodeReading): string | undefined {
  const { node, state, obstacle } = reading;
  const { conditions, verification } = reading.machineConfigNode.status ?? {};
  const { progress, stage } = state.update;
  const remark = () => (node === undefined ? undefined : remarkOn(reading));
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
      return verification?.waitsFor ?? stage?.condition.message;
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
        closedBecause(reading) ??
        (reading.domainWait && formatDomainWait(reading.domainWait)) ??
        heldBecause(reading) ??
        conditionOf(conditions, 'UpdatePrepared')?.message
      );
    case 'unmanaged':
      return undefined;
  }
}

/** What the node waits for, as the operator decides it from the same objects. */
function remarkOn({ machineConfigNode: { status }, pool, state, now }: NodeReading): string | undefined {
  const settings = pool === undefined ? undefined : settingsOfPool(pool);
  const context = {
    closed: pool === undefined || settings === undefined ? undefined : poolHold({ pool, settings })?.message,
    patience: defaultRolloutOptions.pace.degradedPatienceSeconds * 1000,
    unhealthyAfter: settings?.unhealthyAfter ?? defaultRolloutOptions.pace.unhealthyAfterSeconds * 1000,
    now,
  };
  const remark = nodeMessage(state, nodeStep(state, context));
  if (remark !== undefined || settings === undefined || status?.plan?.nextBoot === true) return remark;
  const handover = drivenBy.hold({ settings }, state);
  return handover === undefined ? rebootsByOthers.hold({ settings }, state)?.message : undefined;
}

/** Nothing starts in a pool that somebody closed, or that failed nodes have stopped. */
function closedBecause({ pool, state }: NodeReading): string | undefined {
  if (pool === undefined) return undefined;
  const settings = settingsOfPool(pool);
  const hold = poolHold({ pool, settings });
  if (hold !== undefined) return `waits: ${hold.message}`;
  const updating = conditionOf(pool.status?.conditions, 'Updating');
  const closed = CLOSED_BY[updating?.reason ?? ''];
  const handover = drivenBy.hold({ settings }, state);
  return closed ?? (handover && `waits: ${handover.message}`);
}

/** What nodes wait for, by the reason of the pool's condition Updating. */
const CLOSED_BY: Readonly<Partial<Record<string, string>>> = {
  RolloutStopped: 'waits: the rollout has stopped',
  AwaitingMaintenanceWindow: 'waits: the maintenance window is closed',
};

/** What the pool's nodes wait for that have staged their target, as the operator reports it: alerts are no objects. */
function heldBecause({ pool }: NodeReading): string | undefined {
  const held = trueCondition(pool?.status?.conditions, 'UpdatesHeld');
  return held && `held: ${held.message}`;
}
