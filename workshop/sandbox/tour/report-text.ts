import type { NodeRow, StepReport, TourReport } from './report.ts';

const HEADINGS = ['step', 'node', 'pool', 'mode', 'config', 'image', 'actions', 'why', 'seconds'] as const;
/** Characters of a hash that tell it from others, as people copy them. */
const SHORT_HASH = 10;
const LONGEST_WHY = 60;

/** @returns the tour's end: what each node did and why, how long each step took, and how much memory it took. */
export function formatReport(report: TourReport): string {
  const rows = report.steps.flatMap(({ number, rows: own }) => own.map((row) => cellsOf(number, row)));
  const lines = [
    ...(rows.length === 0 ? [] : ['What each node did:', '', ...tableLines([HEADINGS, ...rows]), '']),
    'Steps:',
    '',
    ...tableLines([['step', 'seconds', 'result', 'title'], ...report.steps.map(stepCells)]),
    '',
    ...report.steps.flatMap(failureLines),
    `${report.steps.filter(({ failure }) => failure === undefined).length} of ${report.totalSteps} steps ended as they should, in ${report.seconds.toFixed(1)} s; at most ${Math.round(report.peakMemory / 1024 ** 2)} MiB resident in all processes together`,
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
    row.actions,
    row.why.length > LONGEST_WHY ? `${row.why.slice(0, LONGEST_WHY - 1)}…` : row.why,
    row.seconds.toFixed(1),
  ];
}

/** `rendered-worker-0123456789abcdef…` is told from others by its first digits. */
function shortConfig(name: string): string {
  const [, pool = name, hash = ''] = /^rendered-(.+)-([0-9a-f]{32})$/.exec(name) ?? [];
  return hash === '' ? pool : `${pool}-${hash.slice(0, SHORT_HASH)}`;
}

function stepCells({ number, seconds, failure, skipped, title }: StepReport): readonly string[] {
  const result = failure === undefined ? (skipped === undefined ? 'ok' : 'skipped') : 'FAILED';
  return [
    String(number),
    seconds.toFixed(1),
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

function tableLines(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}
