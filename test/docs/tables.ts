import { type Page, proseOf } from './pages.ts';

/**
 * @returns rows of a page's tables that have another number of cells than their header, or a literal line of dashes in
 * a cell.
 */
export function brokenRows(page: Page): string[] {
  let columns = 0;
  return proseOf(page)
    .split('\n')
    .flatMap((line, index, lines) => {
      const cells = cellsOf(line);
      if (cells === undefined) {
        columns = 0;
        return [];
      }
      const isHeader = columns === 0;
      if (isHeader) columns = cells.length;
      const isBroken =
        cells.length !== columns || (!isDelimiter(line, lines[index - 2]) && cells.some(isDashes));
      return isBroken ? [`line ${index + 1}: ${line.slice(0, 60).trim()}`] : [];
    });
}

/** @returns undefined for a line that is no row of a table. */
function cellsOf(line: string): string[] | undefined {
  const row = line.trim();
  if (!row.startsWith('|') || !row.endsWith('|')) return undefined;
  return row.slice(1, -1).split(/(?<!\\)\|/);
}

/** @param before the line two above: the delimiter is the second line of its table. */
function isDelimiter(line: string, before: string | undefined): boolean {
  return /^[\s|:-]+$/.test(line) && (before === undefined || cellsOf(before) === undefined);
}

/** A single dash stands for "none". */
function isDashes(cell: string): boolean {
  return /^\s*-{2,}\s*$/.test(cell);
}
