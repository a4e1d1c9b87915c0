import { createHash } from 'node:crypto';
import { formatAction } from '../../api/disruption-action.ts';
import type { Node } from '../../api/kubernetes.ts';
import type { MachineConfigNode, UpdatePlan } from '../../api/machine-config-node.ts';
import { isReady } from '../../rollout/pools/node-availability.ts';
import type { NodeSource } from '../../view/node-source.ts';
import { type NodeViewSource, readNodeView } from '../../view/node-view.ts';
import type { LastUpdate, NodeRow, PlanRow, Table } from '../model/view.ts';

/** What the row of a node is read from, whether or not a daemon manages it. */
export type RowSource = NodeSource & Pick<NodeViewSource, 'domainWait'>;

/**
 * @param plans receives the plans of the node's target and of its last update.
 * @param now ms since the epoch.
 */
export function nodeRow(source: RowSource, plans: PlanTable, now: number): NodeRow {
  const { node, machineConfigNode, dispute } = source;
  if (machineConfigNode === undefined) return unmanagedRow(node, dispute);
  const { spec, status } = machineConfigNode;
  const view = readNodeView({ ...source, machineConfigNode }, now);
  const { name: _, osBackend: _tool, actions: _asked, leaseHolder: _holder, notReady: _why, ...row } = view;
  const { plan, lastUpdate } = status ?? {};
  return {
    ...row,
    pool: dispute === undefined ? view.pool : '',
    what: dispute ?? view.what,
    plan: plan && plans.keyOf(plan),
    last: lastUpdate && lastOf(lastUpdate, spec, plans),
  };
}

function unmanagedRow(node: Node | undefined, dispute: string | undefined): NodeRow {
  return {
    pool: '',
    state: 'unmanaged',
    what: dispute ?? 'it has no MachineConfigNode',
    config: { desired: '' },
    ready: node !== undefined && isReady(node),
    cordoned: node?.spec?.unschedulable === true,
    since: node?.metadata.creationTimestamp,
  };
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
    ofTarget:
      (update.config === configVersion.desired && update.image === configImage?.desiredImage) || undefined,
    message: update.message,
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
  addPlansOf({ status }: MachineConfigNode): void {
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
