import type { TourListener } from './run-tour.ts';

/** Where progress is written: standard error, or a test's own. */
export interface ProgressOutput {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

const BAR = 20;
const DEFAULT_COLUMNS = 100;
/** Back to the line's beginning, and everything on it away (ECMA-48: EL). */
const CLEAR_LINE = '\r\u001b[2K';

/**
 * Tells how the tour goes: on a terminal by one line that changes, with a bar; anywhere else by a line for each thing that
 * happened.
 *
 * @param total how many steps there are.
 */
export function tourProgress(output: ProgressOutput, total: number): TourListener {
  return output.isTTY === true ? terminalProgress(output, total) : plainProgress(output, total);
}

function plainProgress(output: ProgressOutput, total: number): TourListener {
  return {
    onStep: (number, title) => void output.write(`[${number}/${total}] ${title}\n`),
    onProgress: (seen) => void output.write(`      ${seen}\n`),
    onCheck: (what) => void output.write(`      ok: ${what}\n`),
    onStepEnd: ({ number, seconds, failure, skipped }) =>
      void output.write(
        skipped === undefined
          ? `[${number}/${total}] ${failure === undefined ? 'done' : 'FAILED'} in ${seconds.toFixed(1)} s\n`
          : `[${number}/${total}] skipped: ${skipped}\n`,
      ),
  };
}

function terminalProgress(output: ProgressOutput, total: number): TourListener {
  const show = (seen: string, part: number | undefined) => {
    const line = `      ${bar(part)} ${seen}`;
    output.write(`${CLEAR_LINE}${line.slice(0, (output.columns ?? DEFAULT_COLUMNS) - 1)}`);
  };
  return {
    onStep: (number, title) => void output.write(`[${number}/${total}] ${title}\n`),
    onProgress: show,
    onCheck: (what) => void output.write(`${CLEAR_LINE}      ✓ ${what}\n`),
    onStepEnd: ({ seconds, failure, skipped }) =>
      void output.write(
        skipped === undefined
          ? `${CLEAR_LINE}      ${failure === undefined ? '✓ done' : '✗ failed'} in ${seconds.toFixed(1)} s\n`
          : `${CLEAR_LINE}      - skipped: ${skipped}\n`,
      ),
  };
}

/** What isn't known in parts has an empty bar. */
function bar(part = 0): string {
  const done = Math.round(Math.min(1, Math.max(0, part)) * BAR);
  return `${'█'.repeat(done)}${'░'.repeat(BAR - done)}`;
}
