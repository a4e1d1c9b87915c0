import { visible } from '../../api/visible-text.ts';

/** Lines of Markdown for comments on pull requests. Their text is of objects and images, and stays in its line. */

/** @returns an item of a list. */
export const markdownItem = (text: string): string => `- ${inline(text)}`;

/** @returns a row of a table. */
export const markdownRow = (cells: readonly string[]): string => `| ${cells.map(inline).join(' | ')} |`;

/** Escapes text of objects, which must not end a cell or a line of a table. */
function inline(text: string): string {
  return visible(text.replace(/\r?\n/g, ' ')).replaceAll('|', '\\|');
}
