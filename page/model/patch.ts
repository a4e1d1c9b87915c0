import { EMPTY_VIEW, type PageView, type Table } from './view.ts';

/** The tables whose rows are objects. */
type RowTable = Exclude<keyof PageView, 'logs'>;
type Fields = Readonly<Record<string, unknown>>;

/**
 * Converts one view to another: a JSON merge patch (RFC 7386) for the tables, where null removes a row or a field; for
 * a log the number of lines to remove at its start and the lines to add at its end.
 */
export interface ViewPatch {
  readonly rows: Partial<Readonly<Record<RowTable, Readonly<Record<string, Fields | null>>>>>;
  readonly logs: Readonly<Record<string, LogPatch | null>>;
}

interface LogPatch {
  readonly drop: number;
  readonly add: readonly string[];
}

const ROW_TABLES = Object.keys(EMPTY_VIEW).filter((table) => table !== 'logs') as RowTable[];

/**
 * A field that is undefined is absent, as in JSON.
 *
 * @returns the changes; undefined without a change. Rows that are the same object are not compared.
 */
export function diffViews(before: PageView, after: PageView): ViewPatch | undefined {
  if (before === after) return undefined;
  const rows: Partial<Record<RowTable, Record<string, Fields | null>>> = {};
  for (const table of ROW_TABLES) {
    const changed = diffTable(before[table], after[table], diffRow);
    if (changed !== undefined) rows[table] = changed;
  }
  const logs = diffTable(before.logs, after.logs, diffLog) ?? {};
  return Object.keys(rows).length === 0 && Object.keys(logs).length === 0 ? undefined : { rows, logs };
}

/** @returns the view with a patch applied. Rows that the patch doesn't change stay the same objects. */
export function applyPatch(view: PageView, patch: ViewPatch): PageView {
  const next: Record<string, unknown> = { ...view };
  for (const table of ROW_TABLES) {
    const changed = patch.rows[table];
    if (changed !== undefined)
      next[table] = patchTable(view[table] as unknown as Table<Fields>, changed, mergeRow);
  }
  if (Object.keys(patch.logs).length > 0) next['logs'] = patchTable(view.logs, patch.logs, mergeLog);
  return next as unknown as PageView;
}

/**
 * @returns the view, with the objects of the view before for every row and table that is equal: later comparisons
 *   compare references.
 */
export function shareRows(before: PageView, after: PageView): PageView {
  let changed = false;
  const shared: Record<string, unknown> = {};
  for (const table of Object.keys(EMPTY_VIEW) as (keyof PageView)[]) {
    shared[table] = shareTable<unknown>(before[table], after[table]);
    changed ||= shared[table] !== before[table];
  }
  return changed ? (shared as unknown as PageView) : before;
}

function shareTable<Row>(before: Table<Row>, after: Table<Row>): Table<Row> {
  const keys = Object.keys(after);
  let changed = keys.length !== Object.keys(before).length;
  const shared: Record<string, Row> = {};
  for (const key of keys) {
    const row = after[key] as Row;
    const known = before[key];
    const same = known !== undefined && isEqual(known, row);
    shared[key] = same ? known : row;
    changed ||= !same;
  }
  return changed ? shared : before;
}

function diffTable<Row, Change>(
  before: Table<Row>,
  after: Table<Row>,
  diff: (before: Row | undefined, after: Row) => Change | undefined,
): Record<string, Change | null> | undefined {
  if (before === after) return undefined;
  const changed: Record<string, Change | null> = {};
  for (const [key, row] of Object.entries(after)) {
    const known = before[key];
    const change = known === row ? undefined : diff(known, row);
    if (change !== undefined) changed[key] = change;
  }
  for (const key of Object.keys(before)) if (!(key in after)) changed[key] = null;
  return Object.keys(changed).length === 0 ? undefined : changed;
}

function diffRow(before: object | undefined, after: object): Fields | undefined {
  const [old, now] = [(before ?? {}) as Fields, after as Fields];
  const changed: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(now)) {
    if (!isEqual(old[field], value)) changed[field] = value ?? null;
  }
  for (const field of Object.keys(old))
    if (!(field in now) && old[field] !== undefined) changed[field] = null;
  return Object.keys(changed).length === 0 && before !== undefined ? undefined : changed;
}

/** The tail of a log moves: the remaining lines of the old tail are the start of the new one. */
function diffLog(before: readonly string[] | undefined, after: readonly string[]): LogPatch | undefined {
  if (before === undefined) return { drop: 0, add: after };
  let drop = 0;
  while (!startsWith(after, before, drop)) drop += 1;
  const add = after.slice(before.length - drop);
  return drop === 0 && add.length === 0 ? undefined : { drop, add };
}

function startsWith(after: readonly string[], before: readonly string[], from: number): boolean {
  const kept = before.length - from;
  if (kept > after.length) return false;
  for (let index = 0; index < kept; index += 1) if (before[from + index] !== after[index]) return false;
  return true;
}

function patchTable<Row, Change>(
  table: Table<Row>,
  changes: Readonly<Record<string, Change | null>>,
  merge: (row: Row | undefined, change: Change) => Row,
): Table<Row> {
  const next = { ...table };
  for (const [key, change] of Object.entries(changes)) {
    if (change === null) delete next[key];
    else next[key] = merge(next[key], change);
  }
  return next;
}

/** Only rows are merged; fields are replaced. */
function mergeRow(row: Fields | undefined, change: Fields): Fields {
  const next: Record<string, unknown> = { ...row };
  for (const [field, value] of Object.entries(change)) {
    if (value === null) delete next[field];
    else next[field] = value;
  }
  return next;
}

function mergeLog(lines: readonly string[] | undefined, { drop, add }: LogPatch): readonly string[] {
  return [...(lines ?? []).slice(drop), ...add];
}

/** Compares JSON values. */
function isEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  const keys = Object.keys(a);
  return (
    keys.length === Object.keys(b).length &&
    keys.every((key) => isEqual((a as Fields)[key], (b as Fields)[key]))
  );
}
