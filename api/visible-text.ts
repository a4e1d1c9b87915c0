/**
 * Text that others wrote, for people. A terminal executes some characters instead of showing them (ECMA-48: C0, C1, and
 * the sequences that ESC begins), and readers can't see others: Unicode's bidirectional controls reorder a line (UTS
 * #55), and default ignorable code points take no space.
 */

/**
 * Control characters, format characters (bidirectional controls, zero-width characters, tags), line and paragraph
 * separators, lone surrogates, and what is not drawn (Unicode: Default_Ignorable_Code_Point).
 */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}]/gu;

/** JSON's short escapes (RFC 8259, section 7). */
const SHORT: Readonly<Record<string, string>> = {
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
};

/** @returns the text with each character that a reader can't see as its escape; line feeds and tabs are kept. */
export function visible(text: string): string {
  return text.replace(UNSEEN, (character) =>
    character === '\n' || character === '\t' ? character : escaped(character),
  );
}

/**
 * @returns the same for text that must stay in one line or one cell of a table: line feeds and tabs are escaped, too.
 */
export function visibleLine(text: string): string {
  return text.replace(UNSEEN, escaped);
}

/**
 * @param text JSON, or YAML whose strings with such characters are double-quoted.
 * @returns text of the same value in which each such character is an escape.
 */
export function escapedSource(text: string): string {
  return text.replace(UNSEEN, (character) =>
    character === '\n' || character === '\t' ? character : unicodeEscape(character),
  );
}

/** @returns whether a reader can see every character of the text, line feeds and tabs aside. */
export function isVisible(text: string): boolean {
  return visible(text) === text;
}

/** @returns text of several lines in one, for a sentence that has to be: what others write may have any number. */
export function inOneLine(text: string): string {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join('; ');
}

function escaped(character: string): string {
  return SHORT[character] ?? unicodeEscape(character);
}

/** As in JSON: one escape for each UTF-16 code unit. */
function unicodeEscape(character: string): string {
  return Array.from(
    { length: character.length },
    (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`,
  ).join('');
}
