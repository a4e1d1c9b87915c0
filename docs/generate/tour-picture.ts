import { readFileSync } from 'node:fs';

/**
 * Draws docs/tour.svg, the picture in the README, from what `shale sandbox tour` printed:
 *
 *   sudo make demo > tour.log 2>&1; node docs/generate/tour-picture.ts tour.log > docs/tour.svg
 */

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

const lines = linesOf(readFileSync(process.argv[2] ?? '/dev/stdin', 'utf8'));
const width = Math.ceil(2 * MARGIN + LETTER * Math.max(...lines.map(([, text]) => text.length)));
const height = 2 * MARGIN + LINE * lines.length;
process.stdout.write(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="The end of make demo: what each node did and why">
<rect width="${width}" height="${height}" rx="8" fill="#14181f"/>
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="12" fill="#d5dbe3" style="white-space:pre" xml:space="preserve">
${lines.map(([style, text], index) => `<text x="${MARGIN}" y="${MARGIN + 12 + index * LINE}"${STYLES[style]}>${escaped(text)}</text>`).join('\n')}
</g>
</svg>
`);
