import { createHash } from 'node:crypto';
import { formatAction } from '../../api/disruption-action.ts';
import type { Lease, Node } from '../../api/kubernetes.ts';
import type { MachineConfigNode, NodeConditionType, UpdatePlan } from '../../api/machine-config-node.ts';
import type { Condition } from '../../api/object.ts';
import { present } from '../../api/present.ts';
import { holdersOf } from '../../rollout/gates/gates.ts';
import { LEASE_HELD } from '../../rollout/gates/lease-held.ts';
import { holdingOf } from '../../rollout/node-leases.ts';
import { defaultRolloutOptions } from '../../rollout/options.ts';
import { failuresOn, type NodeState, readNode } from '../../rollout/pools/node-state.ts';
import type { LastUpdate, NodeRow, NodeStateName, PlanRow, Table } from '../model/view.ts';
import { heldPodsOf, nodeHolds } from './read-holds.ts';

/** The objects about one node. */
export interface NodeSource {
  readonly node: Node | undefined;
  readonly machineConfigNode: MachineConfigNode | undefined;
  readonly lease: Lease | undefined;
  readonly inMaintenance: boolean;
  /** Why it is in no pool although pools select it, and what to do. */
  readonly dispute: string | undefined;
}

/** Holder of the leases that Shale's rollout takes. */
export const LEASE_HOLDER = defaultRolloutOptions.leaseHolder;

/** Replaces a Node that doesn't exist while its MachineConfigNode does: never Ready. */
function absentNode(name: string): Node {
  return { apiVersion: 'v1', kind: 'Node', metadata: { name } };
}

/**
 * @param plans receives the plans of the node's target and of its last update.
 * @param now ms since the epoch.
 */
export function nodeRow(name: string, source: NodeSource, plans: PlanTable, now: number): NodeRow {
  const { node = absentNode(name), machineConfigNode, lease, inMaintenance, dispute } = source;
  if (machineConfigNode === undefined) return unmanagedRow(node, dispute);
  const { spec, status } = machineConfigNode;
  const seen = { node, lease: holdingOf(lease, LEASE_HOLDER, now), inMaintenance };
  const holders = holdersOf(seen, now);
  const state = readNode({ ...seen, holders, spec, status, assigned: true });
  const word = stateName(state, status?.conditions);
  const since = stateSince(word, machineConfigNode, lease);
  const note = dispute ?? noteOf(word, state, status?.conditions);
  const holds = nodeHolds({ node, lease, inMaintenance }, state, now);
  const heldPods = word === 'draining' ? heldPodsOf(messageOf(status?.conditions, 'Drained') ?? '') : [];
  const { plan, lastUpdate, staging } = status ?? {};
  const image = status?.configImage?.currentImage;
  return {
    pool: dispute === undefined ? spec.pool.name : '',
    state: word,
    ...present({ since, note }),
    ...(staging === undefined ? {} : { staging: { done: staging.bytesDone, total: staging.bytesTotal } }),
    ready: state.ready,
    ...(state.schedulable ? {} : { cordoned: true }),
    ...(word === 'waiting' && plan?.nextBoot === true ? { armed: true } : {}),
    ...present({ maintenance: dispute ?? holders.find(({ reason }) => reason !== LEASE_HELD)?.message }),
    ...(holds.length === 0 ? {} : { holds }),
    ...(heldPods.length === 0 ? {} : { heldPods }),
    ...(state.zone === '' ? {} : { zone: state.zone }),
    ...(status?.configVersion?.current ? { config: status.configVersion.current } : {}),
    ...present({ image }),
    desiredConfig: spec.configVersion.desired,
    ...present({ desiredImage: spec.configImage?.desiredImage, mode: status?.mode }),
    ...(plan === undefined ? {} : { plan: plans.keyOf(plan) }),
    ...(lastUpdate === undefined ? {} : { last: lastOf(lastUpdate, spec, plans) }),
  };
}

function unmanagedRow({ metadata, spec, status }: Node, dispute: string | undefined): NodeRow {
  const ready = (status?.conditions ?? []).some(
    ({ type, status: value }) => type === 'Ready' && value === 'True',
  );
  const note = dispute ?? 'it has no MachineConfigNode';
  return {
    pool: '',
    state: 'unmanaged',
    note,
    ready,
    ...(spec?.unschedulable === true ? { cordoned: true } : {}),
    ...(metadata.creationTimestamp === undefined ? {} : { since: Date.parse(metadata.creationTimestamp) }),
  };
}

type NodeConditions = readonly Condition[] | undefined;

/** The daemon sets the condition of its current step to Unknown (daemon/status.ts). */
function isUnderWay(conditions: NodeConditions, type: NodeConditionType): boolean {
  return conditions?.some((condition) => condition.type === type && condition.status === 'Unknown') ?? false;
}

function stateName({ progress, work }: NodeState, conditions: NodeConditions): NodeStateName {
  if (progress.kind === 'degraded' || progress.kind === 'updated') return progress.kind;
  if (isUnderWay(conditions, 'RebootedNode')) return 'rebooting';
  if (work.grant !== undefined || isUnderWay(conditions, 'UpdateExecuted')) return 'applying';
  if (progress.kind === 'preparing') return 'preparing';
  return work.cordon === undefined ? 'waiting' : 'draining';
}

/** The condition whose last transition is the start of a state. */
const SINCE: Readonly<Record<NodeStateName, NodeConditionType | undefined>> = {
  updated: 'Updated',
  preparing: 'UpdatePrepared',
  waiting: 'UpdatePrepared',
  draining: undefined,
  applying: 'UpdateExecuted',
  rebooting: 'RebootedNode',
  degraded: 'NodeDegraded',
  unmanaged: undefined,
};

function stateSince(
  state: NodeStateName,
  { status }: MachineConfigNode,
  lease: Lease | undefined,
): number | undefined {
  const type = SINCE[state];
  const text =
    state === 'draining'
      ? lease?.spec?.acquireTime
      : state === 'updated' && status?.lastUpdate !== undefined
        ? status.lastUpdate.finishedAt
        : status?.conditions?.find((condition) => condition.type === type)?.lastTransitionTime;
  const since = Date.parse(text ?? '');
  return Number.isNaN(since) ? undefined : since;
}

function noteOf(word: NodeStateName, state: NodeState, conditions: NodeConditions): string | undefined {
  const { progress } = state;
  if (progress.kind === 'degraded') return progress.why;
  const failing = failuresOn(conditions);
  if (failing.length > 0) return failing.join('; ');
  if (progress.kind === 'preparing' && progress.why !== undefined) return progress.why;
  if (state.lease.by === 'other' && word === 'waiting') return `its lease is held by ${state.lease.holder}`;
  if (word === 'applying') return messageOf(conditions, 'UpdateExecuted');
  if (word === 'waiting') return messageOf(conditions, 'UpdatePrepared');
  if (word === 'draining') return messageOf(conditions, 'Drained');
  return undefined;
}

function messageOf(conditions: NodeConditions, type: NodeConditionType): string | undefined {
  return conditions?.find((condition) => condition.type === type)?.message || undefined;
}

function lastOf(
  update: NonNullable<NonNullable<MachineConfigNode['status']>['lastUpdate']>,
  { configVersion, configImage }: MachineConfigNode['spec'],
  plans: PlanTable,
): LastUpdate {
  return {
    plan: plans.keyOf(update),
    config: update.config,
    start: Date.parse(update.startedAt),
    end: Date.parse(update.finishedAt),
    result: update.result,
    ...(update.config === configVersion.desired && update.image === configImage?.desiredImage
      ? { ofTarget: true }
      : {}),
    ...present({ message: update.message }),
  };
}

type Plan = Pick<UpdatePlan, 'actions' | 'causes' | 'source'>;

/** Characters of a key: enough for the few plans of a view to have different keys. */
const KEY_LENGTH = 16;

interface Entry {
  readonly key: string;
  readonly row: PlanRow;
}

/** A plan stays the same object until the status of its node changes, so its entry is computed once. */
const entries = new WeakMap<object, Entry>();

/** The different plans of updates: in a rollout thousands of nodes have equal plans. */
export class PlanTable {
  readonly #rows = new Map<string, PlanRow>();

  /** @returns the key of the row. */
  keyOf(plan: Plan): string {
    const entry = entries.get(plan) ?? entryOf(plan);
    entries.set(plan, entry);
    this.#rows.set(entry.key, entry.row);
    return entry.key;
  }

  /** Adds the plans of a node's target and of its last update. */
  takeOf({ status }: MachineConfigNode): void {
    if (status?.plan !== undefined) this.keyOf(status.plan);
    if (status?.lastUpdate !== undefined) this.keyOf(status.lastUpdate);
  }

  rows(): Table<PlanRow> {
    return Object.fromEntries(this.#rows);
  }
}

function entryOf(plan: Plan): Entry {
  const row = rowOf(plan);
  const key = createHash('sha256').update(JSON.stringify(row)).digest('hex').slice(0, KEY_LENGTH);
  return { key, row };
}

function rowOf({ actions, causes, source }: Plan): PlanRow {
  return {
    actions: actions.map(formatAction),
    causes: causes.map((cause) => ({
      subject: cause.subject,
      change: cause.change,
      rule: cause.rule,
      actions: cause.actions.map(formatAction),
    })),
    source,
  };
}
