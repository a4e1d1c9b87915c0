import { inOneLine, visibleLine } from '../../api/visible-text.ts';
import { inLines } from './lines.ts';
import { textTable } from './output.ts';

/** Text that fits a width. Nothing is cut off: a word that is longer than a line is on a line of its own. */

/** Characters that a column of sentences needs; with fewer, each is below its row. */
const NARROWEST = 30;
const INDENT = '    ';

/**
 * @param indent before each line but the first.
 * @param columns of the terminal; undefined: not a terminal, so one line.
 * @returns the lines of one sentence or several.
 */
export function wrapped(text: string, indent: string, columns: number | undefined): string[] {
  const line = visibleLine(text.includes('\n') ? inOneLine(text) : text);
  return columns === undefined ? [line] : inLines(line, columns - 1, indent);
}

/**
 * @param keep leading columns that are never left out.
 * @param columns of the terminal; undefined: any.
 * @returns a table without those last columns that don't fit.
 */
export function narrowedTable(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  keep: number,
  columns = Number.POSITIVE_INFINITY,
): string[] {
  const lines = textTable(head, rows);
  if (head.length <= keep || lines.every((line) => line.length < columns)) return lines;
  const less = (cells: readonly string[]) => cells.slice(0, -1);
  return narrowedTable(less(head), rows.map(less), keep, columns);
}

/**
 * @param columns of the terminal; undefined: any.
 * @returns a table whose last column has sentences, which continue below in the same column, or each below its row.
 */
export function sentenceTable(
  head: readonly string[],
  all: readonly (readonly string[])[],
  columns: number | undefined,
): string[] {
  const rows = all.map((row) => [...row.slice(0, -1), inOneLine(row.at(-1) ?? '')]);
  if (columns === undefined) return textTable(head, rows);
  const without = textTable(
    head.slice(0, -1),
    rows.map((row) => row.slice(0, -1)),
  );
  const start = Math.max(...without.map((line) => line.length)) + 2;
  const isBeside = columns - start > NARROWEST;
  const [first = '', ...others] = without;
  return [
    isBeside ? `${first.padEnd(start)}${head.at(-1)}` : first,
    ...others.flatMap((line, index) => {
      const sentence = visibleLine(rows[index]?.at(-1) ?? '');
      if (sentence === '') return [line];
      if (!isBeside) return [line, ...inLines(INDENT + sentence, columns - 1, INDENT)];
      return inLines(`${line.padEnd(start)}${sentence}`, columns - 1, ' '.repeat(start), start);
    }),
  ];
}
