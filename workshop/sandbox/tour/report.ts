import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { formatActions } from '../../../api/disruption-action.ts';
import type { MachineConfigNode } from '../../../api/machine-config-node.ts';
import type { Informer } from '../../../cluster/informer.ts';

/** What a node did in a step: a line of the tour's table. */
export interface NodeRow {
  readonly node: string;
  readonly pool: string;
  readonly mode: string;
  readonly config: string;
  /** Of the layered image; empty in standard mode. */
  readonly imageDigest: string;
  readonly actions: string;
  readonly why: string;
  readonly rebooted: boolean;
  readonly seconds: number;
}

export interface StepReport {
  readonly number: number;
  readonly title: string;
  readonly seconds: number;
  /** The checks that passed, as text. */
  readonly checks: readonly string[];
  readonly rows: readonly NodeRow[];
  /** Why it was not taken, on a machine that lacks what it needs. */
  readonly skipped?: string;
  readonly failure?: { readonly message: string; readonly logs: readonly LogTail[] };
}

export interface LogTail {
  readonly file: string;
  readonly lines: readonly string[];
}

export interface TourReport {
  readonly steps: readonly StepReport[];
  readonly totalSteps: number;
  readonly seconds: number;
  /** The most that all processes of the sandbox and the tour had resident at one time; bytes. */
  readonly peakMemory: number;
}

/** @returns whether every step ended as it should. */
export function isSuccess({ steps, totalSteps }: TourReport): boolean {
  return steps.length === totalSteps && steps.every(({ failure }) => failure === undefined);
}

/** @returns the row of a node's last update; undefined where it made none. */
function rowOfLastUpdate({ metadata, spec, status }: MachineConfigNode): NodeRow | undefined {
  const update = status?.lastUpdate;
  if (update === undefined) return undefined;
  return {
    node: metadata.name,
    pool: spec.pool.name,
    mode: update.image === undefined ? 'Standard' : 'Layered',
    config: update.config,
    imageDigest: update.image === undefined ? '' : digestPart(update.image),
    actions: formatActions(update.actions),
    why: update.causes.length === 0 ? update.source : subjects(update.causes.map(({ subject }) => subject)),
    rebooted: update.bootIDBefore !== update.bootIDAfter,
    seconds: (Date.parse(update.finishedAt) - Date.parse(update.startedAt)) / 1000,
  };
}

const SHOWN_SUBJECTS = 2;

function subjects(all: readonly string[]): string {
  const shown = all.slice(0, SHOWN_SUBJECTS).join(', ');
  return all.length > SHOWN_SUBJECTS ? `${shown} and ${all.length - SHOWN_SUBJECTS} more` : shown;
}

function digestPart(image: string): string {
  return image.slice(image.indexOf('@') + 1);
}

const HEADINGS = ['step', 'node', 'pool', 'mode', 'config', 'image', 'seconds', 'actions and why'] as const;
/** Of a terminal that is not narrow; wider lines would be broken anywhere. */
const COLUMNS = 100;
/** Characters of a hash that distinguish it from others, as people copy them. */
const SHORT_HASH = 8;

/** @returns the tour's end: what each node did and why, how long each step took, and how much memory it took. */
export function formatReport(report: TourReport): string {
  const rows = report.steps.flatMap(({ number, rows: own }) => own.map((row) => cellsOf(number, row)));
  const lines = [
    ...(rows.length === 0 ? [] : ['What each node did:', '', ...tableLines([HEADINGS, ...rows]), '']),
    'Steps:',
    '',
    ...tableLines([['step', 'seconds', 'reboots', 'result', 'title'], ...report.steps.map(stepCells)]),
    '',
    ...report.steps.flatMap(failureLines),
    `${report.steps.filter(({ failure }) => failure === undefined).length} of ${report.totalSteps} steps passed in ${report.seconds.toFixed(1)} s; peak resident memory of all processes: ${Math.round(report.peakMemory / 1024 ** 2)} MiB`,
  ];
  return `${lines.join('\n')}\n`;
}

function cellsOf(step: number, row: NodeRow): readonly string[] {
  return [
    String(step),
    row.node,
    row.pool,
    row.mode,
    shortConfig(row.config),
    row.imageDigest === '' ? 'stock' : row.imageDigest.replace('sha256:', '').slice(0, SHORT_HASH),
    row.seconds.toFixed(1),
    row.why === '' ? row.actions : `${row.actions}: ${row.why}`,
  ];
}

/** `rendered-worker-0123456789abcdef…` is distinguished from others by its first digits. */
function shortConfig(name: string): string {
  const [, pool = name, hash = ''] = /^rendered-(.+)-([0-9a-f]{32})$/.exec(name) ?? [];
  return hash === '' ? pool : `${pool}-${hash.slice(0, SHORT_HASH)}`;
}

function stepCells({ number, seconds, rows, failure, skipped, title }: StepReport): readonly string[] {
  const result = failure === undefined ? (skipped === undefined ? 'ok' : 'skipped') : 'FAILED';
  return [
    String(number),
    seconds.toFixed(1),
    String(rows.filter(({ rebooted }) => rebooted).length),
    result,
    skipped === undefined ? title : `${title} (${skipped})`,
  ];
}

function failureLines({ number, failure }: StepReport): readonly string[] {
  if (failure === undefined) return [];
  const logs = failure.logs.flatMap(({ file, lines }) => [
    '',
    `${file}:`,
    ...lines.map((line) => `  ${line}`),
  ]);
  return [`Step ${number}: ${failure.message}`, ...logs, ''];
}

/** The last column is text, which continues on the next line where it is too long. */
function tableLines(rows: readonly (readonly string[])[]): readonly string[] {
  const [head = []] = rows;
  const widths = head
    .slice(0, -1)
    .map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const indent = widths.reduce((sum, width) => sum + width + 2, 0);
  return rows.flatMap((row) => {
    const cells = widths.map((width, column) => (row[column] ?? '').padEnd(width + 2)).join('');
    const [first = '', ...others] = linesOf(row.at(-1) ?? '', COLUMNS - indent);
    return [`${cells}${first}`.trimEnd(), ...others.map((line) => `${' '.repeat(indent)}${line}`)];
  });
}

/** @returns the text in lines of that width, broken between words; a longer word has a line of its own. */
function linesOf(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}

/** Collects what nodes did, update by update. */
export interface UpdateCollector {
  /** @returns the rows since it was last asked, in the order in which the updates ended. */
  take(): readonly NodeRow[];
}

/** @param nodes an informer; an update that it brings is collected once. */
export function collectUpdates(nodes: Informer<MachineConfigNode>): UpdateCollector {
  const last = new Map<string, string>();
  let rows: NodeRow[] = [];
  const look = (node: MachineConfigNode) => {
    const finishedAt = node.status?.lastUpdate?.finishedAt;
    const row = rowOfLastUpdate(node);
    const key = `${finishedAt ?? ''} ${row?.config ?? ''} ${row?.imageDigest ?? ''}`;
    if (row === undefined || last.get(row.node) === key) return;
    last.set(row.node, key);
    rows.push(row);
  };
  for (const node of nodes.list()) look(node);
  nodes.onChange(({ type, object }) => {
    if (type !== 'DELETED') look(object);
  });
  return {
    take() {
      const taken = rows;
      rows = [];
      return taken;
    },
  };
}

const LINES = 12;

/**
 * @param directory of the pods' logs.
 * @param workloads Deployments' names, each for the youngest of its pods (`NAME-3`), or names of DaemonSets' pods.
 * @returns the last lines of those that have written any, in the order in which they are asked for.
 */
export async function readLogTails(directory: string, workloads: readonly string[]): Promise<LogTail[]> {
  const names = await readdir(directory);
  const tails = workloads.map(async (workload): Promise<LogTail[]> => {
    const file = await youngest(
      names.filter((name) => isLogOf(name, workload)).map((name) => path.join(directory, name)),
    );
    const text = file === undefined ? '' : await readFile(file, 'utf8');
    return file === undefined || text === ''
      ? []
      : [{ file, lines: text.trimEnd().split('\n').slice(-LINES) }];
  });
  return (await Promise.all(tails)).flat();
}

function isLogOf(name: string, workload: string): boolean {
  return name.startsWith(workload) && /^(-\d+)?\.log$/.test(name.slice(workload.length));
}

async function youngest(files: readonly string[]): Promise<string | undefined> {
  const dated = await Promise.all(files.map(async (file) => ({ file, at: (await stat(file)).mtimeMs })));
  return dated.toSorted((a, b) => b.at - a.at)[0]?.file;
}
