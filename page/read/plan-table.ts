import { createHash } from 'node:crypto';
import { formatAction } from '../../api/disruption-action.ts';
import type { MachineConfigNode, UpdatePlan } from '../../api/machine-config-node.ts';
import type { PlanRow, Table } from '../model/view.ts';

type Plan = Pick<UpdatePlan, 'actions' | 'causes' | 'source'>;

/** Characters of a key: a page has a few plans, so that no two of them share one. */
const KEY_LENGTH = 16;

interface Entry {
  readonly key: string;
  readonly row: PlanRow;
}

/** A plan is one object for as long as its node's status does not change: it is read once. */
const entries = new WeakMap<object, Entry>();

/** What updates ask of nodes, each kind once: in a rollout thousands of nodes are asked the same. */
export class PlanTable {
  readonly #rows = new Map<string, PlanRow>();

  /** @returns the key of the row. */
  keyOf(plan: Plan): string {
    const entry = entries.get(plan) ?? entryOf(plan);
    entries.set(plan, entry);
    this.#rows.set(entry.key, entry.row);
    return entry.key;
  }

  /** Takes what a node's target, and its last update, ask of it. */
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
