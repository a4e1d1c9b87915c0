import { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { minify, transformWithOxc } from 'vite';

/** The picture of the demo's end, docs/tour.svg. */

const ROOT = path.join(import.meta.dirname, '../..');

/** Pixels. */
const LINE = 16;
const LETTER = 7.2;
const MARGIN = 16;

const STYLES = {
  heading: ' fill="#ffffff" font-weight="bold"',
  quiet: ' fill="#7d8896"',
  passed: ' fill="#7fd18b"',
  plain: '',
} as const;
type Style = keyof typeof STYLES;

/** @returns the lines of the picture: one step with its checks, then the report at the end. */
function linesOf(log: string): readonly (readonly [Style, string])[] {
  const lines = log.trimEnd().split('\n');
  const start = lines.findIndex((line) => line.startsWith('[4/'));
  const end = lines.findIndex((line) => /^\[4\/\d+\] done/.test(line));
  const report = lines.findIndex((line) => line.startsWith('What each node did'));
  if (start < 0 || end < 0 || report < 0) throw new Error('this is not the log of a whole tour');
  const checks = lines.slice(start, end).filter((line) => line.startsWith('      ok: '));
  const done = (lines[end] ?? '').replace(/^\[.*?\] /, '');
  return [
    ['heading', '$ make demo'],
    ['quiet', '…'],
    ['heading', lines[start] ?? ''],
    // As on a terminal.
    ...checks.map((line) => ['passed', line.replace('ok: ', '✓ ')] as const),
    ['passed', `      ✓ ${done}`],
    ['quiet', '…'],
    ...lines.slice(report).map((line) => [styleOf(line), line] as const),
  ];
}

function styleOf(line: string): Style {
  return /^(What each node did|Steps:|step |\d+ of \d+ steps)/.test(line) ? 'heading' : 'plain';
}

function escaped(text: string): string {
  // No-break spaces: browsers collapse others in the text of a picture.
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll(' ', '\u00a0');
}

/**
 * @param log what `shale sandbox tour` printed. @returns the picture as SVG. @throws Error where it is not the log of a
 * whole tour.
 */
export function tourPicture(log: string): string {
  const lines = linesOf(log);
  const width = Math.ceil(2 * MARGIN + LETTER * Math.max(...lines.map(([, text]) => text.length)));
  const height = 2 * MARGIN + LINE * lines.length;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="The end of make demo: what each node did and why">
<rect width="${width}" height="${height}" rx="8" fill="#14181f"/>
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="12" fill="#d5dbe3" style="white-space:pre" xml:space="preserve">
${lines.map(([style, text], index) => `<text x="${MARGIN}" y="${MARGIN + 12 + index * LINE}"${STYLES[style]}>${escaped(text)}</text>`).join('\n')}
</g>
</svg>
`;
}

/** Where imported files are doesn't count. */
const IMPORT = /^import\b[^;]*;$/gm;

/**
 * @returns the digest of the tour and of what draws its picture, without comments, types, formatting, imports and local
 * names.
 */
export async function tourDigest(): Promise<string> {
  const files = globSync('workshop/sandbox/tour/**/*.ts', { cwd: ROOT }).filter(
    (file) => !file.endsWith('.test.ts'),
  );
  const hash = createHash('sha256');
  for (const file of [...files.sort(), 'docs/generate/tour-picture.ts']) {
    const { code } = await transformWithOxc(readFileSync(path.join(ROOT, file), 'utf8'), file);
    hash.update((await minify(file, code.replaceAll(IMPORT, ''), { module: true })).code);
  }
  return `sha256:${hash.digest('hex')}`;
}
