import { isVisible, visible } from '../../api/visible-text.ts';

/**
 * Short and long escapes of what a reader can't see (RFC 8259, section 7), `\n` and `\t` aside; also matches `\\b` and
 * the like.
 */
const ESCAPED = /\\[bfru]/;

/**
 * The one place where data leaves for the page.
 *
 * @returns the value as JSON in one line. In its texts, characters that a reader can't see are shown as their escapes:
 *   the text of a status must neither end the page's lines nor change the order in which they are read.
 */
export function pageJson(value: unknown): string {
  const json = JSON.stringify(value);
  // Almost always: then nothing is walked twice.
  if (isVisible(json) && !ESCAPED.test(json)) return json;
  return JSON.stringify(value, (_, field: unknown) => (typeof field === 'string' ? visible(field) : field));
}
