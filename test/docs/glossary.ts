import path from 'node:path';
import { type Page, readPage } from './pages.ts';

/** Terms of Shale's own: each has one entry in the glossary, and is linked where a page uses it first. */

export const GLOSSARY = 'docs/glossary.md';

/** @returns the terms, as the headings of the glossary have them. */
export function glossaryTerms(): string[] {
  return Array.from(readPage(GLOSSARY).text.matchAll(/^## (.+)$/gm), ([, term = '']) => term);
}

/**
 * @param page any page but the glossary and those that are generated from code.
 * @returns the terms that the page's text uses first without a link to their entry. Headings, tables, comments and code
 *   are not text, and a link to another page is left as it is.
 */
export function unlinkedTerms({ file, text }: Page, terms: readonly string[]): string[] {
  const glossary = path.posix.relative(path.posix.dirname(file), GLOSSARY);
  const prose = withoutOtherLinks(withoutCode(text), glossary);
  return terms.flatMap((term) => {
    const first = new RegExp(`\\b${term.replace(' ', '\\s+')}s?\\b`, 'i').exec(prose);
    if (first === null) return [];
    const anchor = term.toLowerCase().replaceAll(' ', '-');
    const isLinked = prose.slice(first.index + first[0].length).startsWith(`](${glossary}#${anchor})`);
    return isLinked ? [] : [`line ${prose.slice(0, first.index).split('\n').length}: ${term}`];
  });
}

function withoutCode(text: string): string {
  return text
    .replace(/<!--[\s\S]*?-->/g, blank)
    .replace(/^( *)(`{3,})[\s\S]*?^\1\2/gm, blank)
    .replace(/`[^`]*`/g, blank)
    .replace(/^ *(#|\|).*$/gm, blank);
}

function withoutOtherLinks(text: string, glossary: string): string {
  return text.replace(/!?\[[^\]]*\]\(([^)]*)\)/g, (link, target: string) =>
    target.startsWith(`${glossary}#`) ? link : blank(link),
  );
}

/** Keeps lines, so that what is reported has the page's line numbers. */
function blank(text: string): string {
  return text.replace(/[^\n]/g, ' ');
}
