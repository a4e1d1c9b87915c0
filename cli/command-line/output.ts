import { isDeepStrictEqual } from 'node:util';
import { Option } from 'commander';
import { plural } from '../../api/plural.ts';
import { visible, visibleLine } from '../../api/visible-text.ts';
import { inLines } from './lines.ts';

/**
 * The one place where text leaves for a terminal: text for people, JSON or YAML for programs. Much of it was written by
 * others: statuses by nodes, contents by authors of MachineConfigs, errors by servers. A terminal gets no control
 * character but line feeds and tabs, and those that are written here.
 */

/** Output formats of commands about MachineConfigs; the first is the default. */
export const TABLE_FORMATS = ['table', 'json', 'yaml'];

/** @param choices the first is the default. */
export function outputFlag(...choices: string[]): Option {
  return new Option('-o, --output <format>', 'output format').choices(choices).default(choices[0]);
}

/**
 * How a word is meant, in a cell of a table or at the start of a line: its colour on a terminal. The word itself says
 * it, too.
 */
export type Tones = Readonly<Record<string, 'bad' | 'careful' | 'good'>>;

/** ECMA-48: SGR, in the colours that each terminal has for them. */
const COLOURS = { bad: '\u001b[31m', careful: '\u001b[33m', good: '\u001b[32m' } as const;
/** All of a cell, which two spaces or a line's ends enclose, or what a line begins with. */
const WORD_OF_ITS_OWN = /(?<=^| {2})[A-Za-z]+(?= {2}|:|$)/gm;
const PLAIN = '\u001b[39m';

/** Prints text on standard output, ended by a line feed. @param tones words that are coloured on a terminal. */
export function print(text: string, tones: Tones = {}): void {
  process.stdout.write(coloured(ended(visible(text)), tones, process.stdout));
}

/**
 * @param tones words of letters.
 * @returns the text with these words in colour where a terminal shows it; not with NO_COLOR (no-color.org) or
 *   TERM=dumb.
 */
export function coloured(
  text: string,
  tones: Tones,
  { isTTY = false }: Pick<ProgressOutput, 'isTTY'>,
  { NO_COLOR = '', TERM = '' }: NodeJS.ProcessEnv = process.env,
): string {
  if (!isTTY || NO_COLOR !== '' || TERM === 'dumb') return text;
  return text.replace(WORD_OF_ITS_OWN, (word) => {
    const tone = tones[word];
    return tone === undefined ? word : `${COLOURS[tone]}${word}${PLAIN}`;
  });
}

/** Prints text that is no result on standard error, ended by a line feed: warnings, errors, progress. */
export function note(text: string): void {
  process.stderr.write(ended(visible(text)));
}

const ended = (text: string): string => (text.endsWith('\n') ? text : `${text}\n`);

/**
 * Lays out rows as kubectl does: columns are separated by at least two spaces. No cell begins another line.
 *
 * @returns the lines, without trailing spaces.
 */
export function textTable(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const all = [head, ...rows].map((row) => row.map(visibleLine));
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  return all.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

/** Where progress is printed: standard error, or a test's own stream. */
export interface ProgressOutput {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
  write(text: string): unknown;
}

/** Erases everything after the cursor (ECMA-48: ED). */
const CLEAR_BELOW = '\u001b[J';
const DEFAULT_COLUMNS = 100;
const DEFAULT_ROWS = 24;

/**
 * On a terminal lines that change in place; elsewhere each line again when it changes, as suits a log.
 *
 * @returns `show` prints the progress, a line for each thing that goes on; `end` clears the lines for the next output.
 */
export function progressLines(output: ProgressOutput = process.stderr) {
  const onTerminal = output.isTTY === true;
  let shown: readonly string[] = [];
  const draw = (lines: readonly string[]) => {
    const up = shown.length > 1 ? `\u001b[${shown.length - 1}A` : '';
    output.write(`\r${up}${CLEAR_BELOW}${lines.join('\n')}`);
  };
  return {
    show(text: string): void {
      const all = visible(text).split('\n');
      const lines = onTerminal ? fitted(all, output) : all;
      if (isDeepStrictEqual(lines, shown)) return;
      if (onTerminal) draw(lines);
      else for (const line of lines) if (!shown.includes(line)) output.write(`${line}\n`);
      shown = lines;
    },
    end(): void {
      if (onTerminal && shown.length > 0) draw([]);
      shown = [];
    },
  };
}

/** Lines that scroll, or that the terminal breaks, can't be redrawn. */
function fitted(
  lines: readonly string[],
  { columns = DEFAULT_COLUMNS, rows = DEFAULT_ROWS }: ProgressOutput,
): string[] {
  return lines
    .flatMap((line) => inLines(line, columns - 1, '  '))
    .slice(0, rows - 1)
    .map((line) => line.slice(0, columns - 1));
}

/**
 * An area of a terminal that is redrawn in place. Text that scrolls can't be, so it is cut to the terminal's height and
 * width.
 *
 * @returns `draw`, whose `tones` are words that are coloured.
 */
export function createScreen(output: ProgressOutput = process.stdout) {
  let drawn = 0;
  return {
    draw(text: string, tones: Tones = {}): void {
      const { columns = 80, rows = 24 } = output;
      const all = visible(text).trimEnd().split('\n');
      const room = rows - 1;
      const fitting =
        all.length <= room
          ? all
          : [...all.slice(0, room - 1), `… ${plural(all.length - room + 1, 'more line')}`];
      // ECMA-48: CUU, up to where the last drawing began.
      const up = drawn === 0 ? '' : `\u001b[${drawn}A`;
      const shown = fitting.map((line) => `${line.slice(0, columns - 1)}\n`).join('');
      output.write(`${up}\r${CLEAR_BELOW}${coloured(shown, tones, { isTTY: true })}`);
      drawn = fitting.length;
    },
  };
}
