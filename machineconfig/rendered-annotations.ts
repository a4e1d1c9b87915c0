import { z } from 'zod';
import type { MachineConfig } from '../api/machine-config.ts';
import { annotations } from '../api/names.ts';
import { DEFAULT_LIMITS, type Limits } from './ignition/contents.ts';
import type { ParsedMachineConfig } from './parse-machine-config.ts';
import type { ConfigProblems } from './problem.ts';

/** Means every file and unit of the MachineConfig. */
const ALL = '*';

export interface NoRebootMarks {
  /** Paths and unit names, sorted. */
  readonly marked: readonly string[];
  readonly problems: readonly ConfigProblems[];
}

/**
 * Collects what the owners of MachineConfigs marked as needing no reboot. An entry that several MachineConfigs have is
 * marked only when each of them marks it: one owner can't decide about another's drop-ins.
 *
 * @param configs in merge order, each with what it was parsed to.
 * @returns the marks, or what they name that their MachineConfig doesn't have.
 */
export function noRebootMarks(
  configs: readonly { readonly config: MachineConfig; readonly parsed: ParsedMachineConfig }[],
): NoRebootMarks {
  if (configs.every(({ config }) => config.metadata.annotations?.[annotations.noReboot] === undefined)) {
    return { marked: [], problems: [] };
  }
  const marks = new Map<string, boolean>();
  const problems: ConfigProblems[] = [];
  for (const { config, parsed } of configs) {
    const own = subjectsOf(parsed);
    const named = (config.metadata.annotations?.[annotations.noReboot] ?? '')
      .split(/[\s,]+/)
      .filter((name) => name !== '');
    const marked = new Set(named.includes(ALL) ? own : named);
    for (const subject of own) marks.set(subject, marked.has(subject) && marks.get(subject) !== false);
    for (const name of named.filter((subject) => subject !== ALL && !own.includes(subject))) {
      problems.push({ machineConfig: config.metadata.name, problems: [unknown(name)] });
    }
  }
  const marked = [...marks].flatMap(([subject, holds]) => (holds ? [subject] : [])).sort();
  return { marked, problems };
}

function subjectsOf({ ignition }: ParsedMachineConfig): readonly string[] {
  const files = (ignition?.storage?.files ?? []).map(({ path }) => path);
  return [...files, ...(ignition?.systemd?.units ?? []).map(({ name }) => name)];
}

function unknown(name: string) {
  return {
    path: `metadata.annotations[${annotations.noReboot}]`,
    reason: `${JSON.stringify(name)} is no file or unit of this MachineConfig`,
    expected: 'paths of its own files and names of its own units, separated by commas, or *',
  };
}

/** @returns the marks of a rendered config; none when its annotation can't be parsed, because a reboot is always safe. */
export function readNoReboot({ metadata }: MachineConfig): ReadonlySet<string> {
  const text = metadata.annotations?.[annotations.noReboot];
  if (text === undefined) return new Set();
  try {
    const list: unknown = JSON.parse(text);
    return new Set(Array.isArray(list) ? list.filter((item) => typeof item === 'string') : []);
  } catch {
    return new Set();
  }
}

const Recorded = z.object({ fileBytes: z.int().positive(), configBytes: z.int().positive() });

/** @returns the annotations that record limits other than the default, for parsing the rendered config later. */
export function recordLimits({ fileBytes, configBytes }: Limits): Readonly<Record<string, string>> {
  if (fileBytes === DEFAULT_LIMITS.fileBytes && configBytes === DEFAULT_LIMITS.configBytes) return {};
  return { [annotations.limits]: JSON.stringify({ fileBytes, configBytes }) };
}

/**
 * @returns the limits that a config was rendered with; the default limits when the record can't be parsed. Users who may
 *   write a rendered config can write any file on a node, so the record grants them nothing in addition.
 */
export function recordedLimits({ metadata }: MachineConfig): Limits {
  const text = metadata.annotations?.[annotations.limits];
  if (text === undefined) return DEFAULT_LIMITS;
  try {
    return Recorded.parse(JSON.parse(text));
  } catch {
    return DEFAULT_LIMITS;
  }
}

const MIB = 1024 * 1024;

/** @returns limits in bytes, or the default limits. @param given in MiB. */
export function limitsInMiB(given: {
  readonly file?: number | undefined;
  readonly config?: number | undefined;
}): Limits {
  return {
    fileBytes: given.file === undefined ? DEFAULT_LIMITS.fileBytes : given.file * MIB,
    configBytes: given.config === undefined ? DEFAULT_LIMITS.configBytes : given.config * MIB,
  };
}
