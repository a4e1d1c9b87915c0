import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** What is for people to read, and what in it a program can look at: code blocks, links, headings. */

export const ROOT = path.join(import.meta.dirname, '../..');

export interface Page {
  /** Path in the project. */
  readonly file: string;
  readonly text: string;
  readonly blocks: readonly Block[];
}

export interface Block {
  /** The first word after the fence; empty where there is none. */
  readonly language: string;
  /** The words after it: see page-problems.ts and run-page.ts. */
  readonly words: readonly string[];
  readonly text: string;
  /** Of the fence, from 1. */
  readonly line: number;
}

/** @returns every Markdown page of the project, sorted by path. */
export function allPages(): Page[] {
  const exclude = (name: string) =>
    ['node_modules', '.shale', 'dist', 'transcripts', 'testdata'].includes(name);
  return globSync('**/*.md', { cwd: ROOT, exclude }).sort().map(readPage);
}

/** @param file path in the project. */
export function readPage(file: string): Page {
  const text = readFileSync(path.join(ROOT, file), 'utf8');
  return { file, text, blocks: blocksOf(text) };
}

const FENCE = /^(?<indent> *)(?<fence>`{3,}|~{3,})(?<info>.*)$/;

function blocksOf(text: string): Block[] {
  const blocks: Block[] = [];
  let open:
    | { readonly indent: string; readonly fence: string; readonly info: string; readonly line: number }
    | undefined;
  let lines: string[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    const { indent = '', fence = '', info = '' } = FENCE.exec(line)?.groups ?? {};
    if (open === undefined) {
      if (fence !== '') [open, lines] = [{ indent, fence, info, line: index + 1 }, []];
    } else if (fence.startsWith(open.fence) && info.trim() === '') {
      const [language = '', ...words] = open.info.trim().split(/\s+/);
      blocks.push({ language, words, text: lines.map((each) => `${each}\n`).join(''), line: open.line });
      open = undefined;
    } else {
      // A block in a list is indented with it.
      lines.push(line.startsWith(open.indent) ? line.slice(open.indent.length) : line.trimStart());
    }
  }
  if (open !== undefined) throw new Error(`line ${open.line}: a code block is not closed`);
  return blocks;
}

/** @returns the page without its code blocks and comments, each line in its place. */
export function proseOf({ text }: Page): string {
  const blank = (found: string) => found.replaceAll(/[^\n]/g, '');
  return text
    .replaceAll(/^ *(`{3,}|~{3,})[^\n]*\n[\s\S]*?^ *\1 *$/gm, blank)
    .replaceAll(/<!--[\s\S]*?-->/g, blank);
}

/** @returns the anchors of the page's headings, as GitHub makes them. */
export function anchorsOf(page: Page): ReadonlySet<string> {
  const anchors = new Set<string>();
  for (const [, heading = ''] of proseOf(page).matchAll(/^#{1,6} +(.+?) *$/gm)) {
    const words = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const anchor = words.replaceAll(/[^\p{L}\p{N}\p{M} _-]/gu, '').replaceAll(' ', '-');
    let unique = anchor;
    for (let n = 1; anchors.has(unique); n += 1) unique = `${anchor}-${n}`;
    anchors.add(unique);
  }
  return anchors;
}

/** @returns targets of the page's links and images. */
export function linksOf(page: Page): string[] {
  const prose = proseOf(page).replaceAll(/`[^`\n]*`/g, '');
  return [...prose.matchAll(/\]\(([^)\s]+)(?: "[^"]*")?\)/g)].map(([, target = '']) => target);
}
