import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { by } from '../../api/order.ts';
import type { PoolRevision } from '../../api/pool-revision.ts';
import { present } from '../../api/present.ts';
import { subjectOf, textOf } from '../../machineconfig/config-text.ts';
import { diffNodeConfigs } from '../../machineconfig/diff.ts';
import type { ConfigChange, NodeConfig } from '../../machineconfig/node-config.ts';
import { ownersOf } from '../../machineconfig/owners.ts';
import { diffLines } from '../../machineconfig/text-diff.ts';
import { recordOf } from '../../rollout/pools/pool-record.ts';
import { nodeConfigOf } from '../../rollout/rendering/predicted-transitions.ts';
import type { ChangeEntry, PoolChange } from '../model/pool-change.ts';
import { changeOfPool } from './read-pool.ts';
import { maskSecrets, whyWithheld } from './secret-lines.ts';

/** Which configs a pool's change is between, and which MachineConfigs may explain it. */
export interface ChangeNames {
  readonly from: string | undefined;
  readonly to: string;
  readonly fromRevision?: number;
  readonly revision?: number;
  /** In merge order. */
  readonly sources: readonly string[];
}

/**
 * @param revisions those of every pool.
 * @returns the change that the pool is in, or its last one: the record has the config before it.
 */
export function changeNames(pool: MachineConfigPool, revisions: readonly PoolRevision[]): ChangeNames {
  const record = recordOf(pool, revisions);
  const { from, to } = changeOfPool(pool);
  const latest = (config: string | undefined) =>
    record.findLast(({ spec }) => spec.machineConfig.name === config);
  const current = latest(to)?.spec.revision;
  const earlier =
    from !== undefined && from !== to
      ? from
      : record.findLast(({ spec }) => spec.machineConfig.name !== to && spec.revision < (current ?? Infinity))
          ?.spec.machineConfig.name;
  const { configuration } = pool.spec;
  return {
    from: earlier,
    to,
    ...present({ fromRevision: latest(earlier)?.spec.revision, revision: current }),
    sources: configuration?.name === to ? (configuration.source ?? []).flatMap(({ name }) => name ?? []) : [],
  };
}

/** Bounds of an answer: a page shows no more than people read, and the operator has other things to do. */
const MOST_CHANGES = 200;
const MOST_LINES = 400;
const MOST_LINES_OF_ALL = 4_000;
const MOST_EDITS = 1_000;
/** Characters: a line of a minified file. */
const LONGEST_LINE = 400;

/**
 * @param configs both rendered configs and the MachineConfigs of `names`, as far as they exist.
 * @returns what changes on the nodes' disks, without secrets.
 */
export function readChange(
  pool: string,
  names: ChangeNames,
  configs: ReadonlyMap<string, MachineConfig>,
): PoolChange {
  const { from, to, fromRevision, revision, sources } = names;
  const known = { pool, to, ...present({ from, fromRevision, revision }) };
  if (from === undefined) return { ...known, changes: [], remark: 'the pool has no earlier config' };
  for (const name of [from, to]) {
    if (configs.has(name)) continue;
    return { ...known, changes: [], remark: `${name === '' ? 'the target' : name} no longer exists` };
  }
  const [before, after] = [nodeConfigOf(configs.get(from)), nodeConfigOf(configs.get(to))];
  if (before === undefined || after === undefined) {
    return { ...known, changes: [], remark: `${before === undefined ? from : to} can't be read` };
  }
  const owners = sources.flatMap((name) => configs.get(name) ?? []);
  const changes = diffNodeConfigs(before, after);
  const entries = changes
    .slice(0, MOST_CHANGES)
    .map((change) => entryOf(change, before, after, ownersOf(change, owners)));
  const more = changes.length - entries.length;
  const ordered = entries.toSorted(by(({ subject }) => subject));
  return {
    ...known,
    changes: withinBounds(ordered),
    ...(more === 0 ? {} : { remark: `${more} more are not shown` }),
  };
}

/** Of a very large change the first entries have their lines. */
function withinBounds(entries: readonly ChangeEntry[]): readonly ChangeEntry[] {
  let shown = 0;
  return entries.map((entry) => {
    const { lines, ...rest } = entry;
    if (lines === undefined) return entry;
    if (shown + lines.length > MOST_LINES_OF_ALL) return { ...rest, withheld: 'the change is too large' };
    shown += lines.length;
    return entry;
  });
}

function entryOf(
  change: ConfigChange,
  before: NodeConfig,
  after: NodeConfig,
  machineConfigs: readonly string[],
): ChangeEntry {
  const entry = { kind: change.kind, subject: subjectOf(change), change: change.change, machineConfigs };
  const withheld = whyWithheld(change, [before, after]);
  const diff = diffLines(textOf(before, change, 'before'), textOf(after, change, 'after'), MOST_EDITS);
  if (diff === undefined) return { ...entry, withheld: withheld ?? `more than ${MOST_EDITS} lines differ` };
  const { added, removed, lines } = diff;
  if (withheld !== undefined) return { ...entry, added, removed, withheld };
  const shown = lines.slice(0, MOST_LINES).map((line) => cut(maskSecrets(line)));
  const more = lines.length - shown.length;
  return { ...entry, added, removed, lines: more === 0 ? shown : [...shown, `@@ ${more} more lines`] };
}

function cut(line: string): string {
  return line.length <= LONGEST_LINE ? line : `${line.slice(0, LONGEST_LINE)}…`;
}
