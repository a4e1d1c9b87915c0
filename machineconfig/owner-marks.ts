import { z } from 'zod';
import { DisruptionAction, formatAction, formatActions, ServiceName } from '../api/disruption-action.ts';
import type { MachineConfig } from '../api/machine-config.ts';
import { annotations } from '../api/names.ts';
import { byCodeUnits } from '../api/order.ts';
import type { OwnerMarks } from './node-config.ts';
import type { ParsedMachineConfig } from './parse-machine-config.ts';
import type { ConfigProblems, Problem } from './problem.ts';

/**
 * What the owner of a MachineConfig says that a change of its own files and units requires: nothing (annotation
 * `shale.dev/no-reboot`), or the actions of a policy (`shale.dev/actions`).
 */

/** Means every file and unit of the MachineConfig. */
const ALL = '*';

/**
 * Collects the marks of the owners of MachineConfigs. An entry that several MachineConfigs have is marked only when
 * each of them marks it, and none names other actions than another: one owner can't decide about another's drop-ins.
 *
 * @param configs in merge order, each with what it was parsed to.
 * @returns the marks, sorted by subject, or what can't be parsed and what they name that their MachineConfig doesn't
 *   have.
 */
export function collectMarks(
  configs: readonly { readonly config: MachineConfig; readonly parsed: ParsedMachineConfig }[],
): { readonly marked: OwnerMarks; readonly problems: readonly ConfigProblems[] } {
  if (configs.every(({ config }) => !isMarked(config))) return { marked: new Map(), problems: [] };
  const marks = new Map<string, readonly DisruptionAction[] | undefined>();
  const problems: ConfigProblems[] = [];
  for (const { config, parsed } of configs) {
    const own = subjectsOf(parsed);
    const marked = marksOf(config, own);
    for (const subject of own) {
      const mark = marked.marks.get(subject);
      marks.set(subject, marks.has(subject) ? inCommon(marks.get(subject), mark) : mark);
    }
    if (marked.problems.length > 0) {
      problems.push({ machineConfig: config.metadata.name, problems: marked.problems });
    }
  }
  const holding = [...marks].flatMap(([subject, mark]) =>
    mark === undefined ? [] : [[subject, mark] as const],
  );
  return { marked: new Map(holding.sort(([a], [b]) => byCodeUnits(a, b))), problems };
}

function isMarked({ metadata }: MachineConfig): boolean {
  return [annotations.noReboot, annotations.actions].some(
    (name) => metadata.annotations?.[name] !== undefined,
  );
}

/** One owner may say that nothing is needed where another names actions, which are then done. */
function inCommon(
  one: readonly DisruptionAction[] | undefined,
  other: readonly DisruptionAction[] | undefined,
): readonly DisruptionAction[] | undefined {
  if (one === undefined || other === undefined) return undefined;
  if (one.length === 0) return other;
  return other.length === 0 || formatActions(one) === formatActions(other) ? one : undefined;
}

function subjectsOf({ ignition }: ParsedMachineConfig): readonly string[] {
  const files = (ignition?.storage?.files ?? []).map(({ path }) => path);
  return [...files, ...(ignition?.systemd?.units ?? []).map(({ name }) => name)];
}

/** An entry that both annotations name requires the actions of the second. */
function marksOf(
  { metadata }: MachineConfig,
  own: readonly string[],
): { readonly marks: OwnerMarks; readonly problems: readonly Problem[] } {
  const { [annotations.noReboot]: noReboot = '', [annotations.actions]: text = '' } =
    metadata.annotations ?? {};
  const unmarked = noReboot.split(/[\s,]+/).filter((name) => name !== '');
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .map(parseLine);
  const known = new Set(own);
  const unknown = (annotation: string, name: string) =>
    name === ALL || known.has(name) ? [] : [unknownSubject(annotation, name)];
  const entries = [
    ...unmarked.map((name) => ({ name, actions: [] as readonly DisruptionAction[] })),
    ...lines.flatMap((line) => ('why' in line ? [] : [line])),
  ];
  const marks = new Map<string, readonly DisruptionAction[]>();
  // What is named itself counts more than what is named among all.
  for (const { actions } of entries.filter(({ name }) => name === ALL)) {
    for (const subject of own) marks.set(subject, actions);
  }
  for (const { name, actions } of entries.filter((entry) => entry.name !== ALL)) marks.set(name, actions);
  return {
    marks,
    problems: [
      ...unmarked.flatMap((name) => unknown(annotations.noReboot, name)),
      ...lines.flatMap((line) =>
        'why' in line ? [unreadable(line)] : unknown(annotations.actions, line.name),
      ),
    ],
  };
}

type Line =
  | { readonly name: string; readonly actions: readonly DisruptionAction[] }
  | { readonly text: string; readonly why: string };

/** The API's limit for a policy (openshift/api, operator/v1). */
const MOST_ACTIONS = 10;

function parseLine(text: string): Line {
  const at = text.lastIndexOf(': ');
  if (at <= 0) return { text, why: 'has no ": " between a subject and its actions' };
  const words = text
    .slice(at + 2)
    .split(',')
    .map((word) => word.trim());
  if (words.length > MOST_ACTIONS) return { text, why: `has more than ${MOST_ACTIONS} actions` };
  const alone = words.find((word) => words.length > 1 && (word === 'None' || word === 'Reboot'));
  if (alone !== undefined) return { text, why: `has ${alone} beside other actions` };
  const parsed = words.map((word) => ({ word, action: word === 'None' ? undefined : parseAction(word) }));
  const bad = parsed.find(({ word, action }) => word !== 'None' && action === undefined);
  if (bad !== undefined) return { text, why: `has ${JSON.stringify(bad.word)}, which is no action` };
  return { name: text.slice(0, at), actions: parsed.flatMap(({ action }) => action ?? []) };
}

function parseAction(text: string): DisruptionAction | undefined {
  if (text === 'Drain' || text === 'DaemonReload' || text === 'Reboot') return { type: text };
  const [, type, service] = /^(Reload|Restart)\((.*)\)$/.exec(text) ?? [];
  if (!ServiceName.safeParse(service).success) return undefined;
  const parsed = DisruptionAction.safeParse({ type, service });
  return parsed.success ? parsed.data : undefined;
}

function unreadable({ text, why }: Extract<Line, { readonly why: string }>): Problem {
  return {
    path: `metadata.annotations[${annotations.actions}]`,
    reason: `${JSON.stringify(text)} ${why}`,
    expected:
      'lines such as /etc/app.conf: Restart(app.service), with None, DaemonReload, Drain, Reload, Restart or Reboot',
  };
}

function unknownSubject(annotation: string, name: string): Problem {
  const form = annotation === annotations.noReboot ? ', separated by commas, or *' : ', one in a line, or *';
  return {
    path: `metadata.annotations[${annotation}]`,
    reason: `${JSON.stringify(name)} is no file or unit of this MachineConfig`,
    expected: `paths of its own files and names of its own units${form}`,
  };
}

/** @returns the annotations of a rendered config that record marks; none where nothing is marked. */
export function recordMarks(marks: OwnerMarks): Readonly<Record<string, string>> {
  const without = [...marks].flatMap(([subject, actions]) => (actions.length === 0 ? [subject] : []));
  const others = [...marks].filter(([, actions]) => actions.length > 0);
  const listed = Object.fromEntries(others.map(([subject, actions]) => [subject, actions.map(formatAction)]));
  return {
    ...(without.length === 0 ? {} : { [annotations.noReboot]: JSON.stringify(without) }),
    ...(others.length === 0 ? {} : { [annotations.actions]: JSON.stringify(listed) }),
  };
}

const RecordedActions = z.record(z.string(), z.array(z.string()).min(1));

/**
 * @returns the marks of a rendered config; those of an annotation that can't be parsed are left out: a reboot is always
 * safe.
 */
export function readMarks({ metadata }: MachineConfig): OwnerMarks {
  const { [annotations.noReboot]: without, [annotations.actions]: others } = metadata.annotations ?? {};
  const list = jsonOf(without);
  const subjects = Array.isArray(list) ? list.filter((item) => typeof item === 'string') : [];
  const recorded = RecordedActions.safeParse(jsonOf(others));
  const parsed = Object.entries(recorded.success ? recorded.data : {}).map(
    ([subject, words]) => [subject, words.map(parseAction)] as const,
  );
  return new Map<string, readonly DisruptionAction[]>([
    ...subjects.map((subject) => [subject, []] as const),
    ...parsed.flatMap(([subject, actions]) => {
      const known = actions.filter((action) => action !== undefined);
      return known.length === actions.length ? [[subject, known] as const] : [];
    }),
  ]);
}

function jsonOf(text: string | undefined): unknown {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
