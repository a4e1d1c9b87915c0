/** @returns a table as Markdown has it, its columns aligned as the formatter wants them. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, ...rows].map((cells) => cells.map(cell));
  const widths = head.map((_, column) => Math.max(3, ...lines.map((cells) => cells[column]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    `| ${widths.map((width, column) => (cells[column] ?? '').padEnd(width)).join(' | ')} |`;
  const rule = `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`;
  const [first = [], ...others] = lines;
  return [line(first), rule, ...others.map(line)].join('\n');
}

/** @returns text that ends no cell and no line. */
function cell(text: string): string {
  const line = text.replaceAll('|', '\\|').replaceAll(/\s+/g, ' ').trim();
  // Between backticks a browser is shown the text; anywhere else `<name>` would be taken for an element.
  return line.replaceAll(/`[^`]*`|</g, (found) => (found === '<' ? '&lt;' : found));
}

/** @returns text that is shown as it is; empty stays empty. */
export function code(text: string): string {
  return text === '' ? '' : `\`${text}\``;
}

/**
 * @param from what the page is made of, as a person would look for it.
 * @param parts paragraphs, headings and tables.
 * @returns a page that says it is generated.
 */
export function page(title: string, from: string, parts: readonly string[]): string {
  const notice = `<!-- Generated from ${from} by \`make manifests\`. Do not edit. -->`;
  return `${[notice, `# ${title}`, ...parts].join('\n\n')}\n`;
}
