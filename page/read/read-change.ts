import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineConfigPool } from '../../api/machine-config-pool.ts';
import { by } from '../../api/order.ts';
import type { PoolRevision } from '../../api/pool-revision.ts';
import { maskStart } from '../../api/secret-text.ts';
import { subjectOf, textOf } from '../../machineconfig/config-text.ts';
import { diffNodeConfigs } from '../../machineconfig/diff.ts';
import { DEFAULT_LIMITS } from '../../machineconfig/ignition/contents.ts';
import type { ConfigChange, NodeConfig } from '../../machineconfig/node-config.ts';
import { ownersOf } from '../../machineconfig/owners.ts';
import { parseNodeConfig } from '../../machineconfig/parse-node-config.ts';
import { recordedLimits } from '../../machineconfig/rendered-annotations.ts';
import { diffLines } from '../../machineconfig/text-diff.ts';
import { recordOf } from '../../rollout/pools/pool-record.ts';
import { changeOfPool } from '../../view/pool-view.ts';
import type { ChangeEntry, PoolChange } from '../model/view.ts';

/** Which configs a pool's change is between, and which MachineConfigs may explain it. */
export interface ChangeNames {
  readonly from: string | undefined;
  readonly to: string;
  readonly fromRevision?: number | undefined;
  readonly revision?: number | undefined;
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
    fromRevision: latest(earlier)?.spec.revision,
    revision: current,
    sources: configuration?.name === to ? (configuration.source ?? []).flatMap(({ name }) => name ?? []) : [],
  };
}

/**
 * Bounds of an answer, and of the work for it, which grows with the square of the lines that differ: a page shows no
 * more than people read, and the author of a MachineConfig chooses what is compared.
 */
const MOST_CHANGES = 200;
const MOST_LINES = 400;
const MOST_EDITS = 1_000;
const MOST_LINES_OF_ALL = 4_000;
/** Characters of both sides of all changes. */
const MOST_TEXT = 4 * 1024 * 1024;
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
  const known = { pool, to, from, fromRevision, revision };
  if (from === undefined) return { ...known, changes: [], remark: 'the pool has no earlier config' };
  for (const name of [from, to]) {
    if (configs.has(name)) continue;
    return { ...known, changes: [], remark: `${name === '' ? 'the target' : name} no longer exists` };
  }
  const [before, after] = [readConfig(configs.get(from)), readConfig(configs.get(to))];
  if (before === undefined || after === undefined) {
    return { ...known, changes: [], remark: `${before === undefined ? from : to} can't be read` };
  }
  const owners = sources.flatMap((name) => configs.get(name) ?? []);
  const changes = diffNodeConfigs(before, after);
  const budget: Budget = { lines: MOST_LINES_OF_ALL, text: MOST_TEXT };
  const entries = changes
    .slice(0, MOST_CHANGES)
    .toSorted(by(subjectOf))
    .map((change) => entryOf({ change, machineConfigs: ownersOf(change, owners) }, [before, after], budget));
  const more = changes.length - entries.length;
  return { ...known, changes: entries, remark: more === 0 ? undefined : `${more} more are not shown` };
}

/**
 * The limits that a config records for itself may be higher; they aren't for those who answer every reader of the page.
 */
function readConfig(config: MachineConfig | undefined): NodeConfig | undefined {
  if (config === undefined) return undefined;
  const { fileBytes, configBytes } = recordedLimits(config);
  const parsed = parseNodeConfig(config, {
    fileBytes: Math.min(fileBytes, DEFAULT_LIMITS.fileBytes),
    configBytes: Math.min(configBytes, DEFAULT_LIMITS.configBytes),
  });
  return parsed.ok ? parsed.config : undefined;
}

/** What is left for the changes that follow: of a very large change, the first entries have their lines. */
interface Budget {
  lines: number;
  text: number;
}

function entryOf(
  { change, machineConfigs }: { readonly change: ConfigChange; readonly machineConfigs: readonly string[] },
  [before, after]: readonly [NodeConfig, NodeConfig],
  budget: Budget,
): ChangeEntry {
  const entry = { kind: change.kind, subject: subjectOf(change), change: change.change, machineConfigs };
  const withheld = whyWithheld(change, [before, after]);
  const [old, current] = [textOf(before, change, 'before'), textOf(after, change, 'after')];
  const [text, edits] = [old.length + current.length, Math.min(MOST_EDITS, budget.lines)];
  if (text > budget.text || edits === 0) return { ...entry, withheld: withheld ?? 'the change is too large' };
  budget.text -= text;
  const diff = diffLines(old, current, edits);
  budget.lines -= diff === undefined ? edits : Math.min(budget.lines, diff.lines.length);
  if (diff === undefined) {
    const why = edits < MOST_EDITS ? 'the change is too large' : `more than ${MOST_EDITS} lines differ`;
    return { ...entry, withheld: withheld ?? why };
  }
  const { added, removed, lines } = diff;
  if (withheld !== undefined) return { ...entry, added, removed, withheld };
  const shown = lines.slice(0, MOST_LINES).map((line) => maskStart(line, LONGEST_LINE));
  const more = lines.length - shown.length;
  return { ...entry, added, removed, lines: more === 0 ? shown : [...shown, `@@ ${more} more lines`] };
}

/**
 * What of a change the page doesn't show, although its viewer may read the MachineConfigs: a page stands open on a
 * screen that others see. A file may be a key or a pull secret (so `shale gather` leaves out all contents).
 */

/** Mode bit: everybody on the node may read the file. */
const OTHERS_READ = 0o004;

const PRIVATE_KEY = /-----BEGIN [A-Z ]*PRIVATE KEY-----/;

/** @returns why the lines of a change are not shown; undefined when they are. */
function whyWithheld(change: ConfigChange, sides: readonly NodeConfig[]): string | undefined {
  if (change.kind === 'passwordHash') return 'it is a password hash';
  if (change.kind === 'file') {
    const files = sides.flatMap(({ files }) => files.get(change.path) ?? []);
    if (files.some(({ mode }) => (mode & OTHERS_READ) === 0))
      return 'its mode keeps it from being read by every user of the node';
    if (files.some(({ contents }) => PRIVATE_KEY.test(Buffer.from(contents).toString('latin1'))))
      return 'it contains a private key';
  }
  if (change.kind === 'unit') {
    const units = sides.flatMap(({ units }) => units.get(change.name) ?? []);
    const texts = units.flatMap(({ contents = '', dropins }) => [contents, ...dropins.values()]);
    if (texts.some((text) => PRIVATE_KEY.test(text))) return 'it contains a private key';
  }
  return undefined;
}
