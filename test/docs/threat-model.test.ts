import { globSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';

/** Every attack of the threat model has a test that tries it, and every test of an attack has its line. */

const ROOT = path.join(import.meta.dirname, '../..');
const PAGE = readFileSync(path.join(ROOT, 'docs/threat-model.md'), 'utf8');
const KINDS = ['.test.ts', '.integration.test.ts', '.e2e.test.ts'];

/** Cells of each line of the page's tables, without their heads. */
const lines = PAGE.split('\n')
  .filter((line) => line.startsWith('|') && !/^\|[\s|-]+\|$/.test(line))
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .filter((cells) => cells.at(-2) !== 'test');

/** @returns the files that a word in backticks names: a path, a pattern, or a test by its name alone. */
function filesOf(word: string): string[] {
  if (word.includes('/') && word.includes('.test.ts')) return globSync(word, { cwd: ROOT });
  return KINDS.flatMap((kind) =>
    ['test/attacks', 'builder/*', 'daemon/*'].flatMap((where) =>
      globSync(`${where}/${word}${kind}`, { cwd: ROOT }),
    ),
  );
}

test.each(lines.map((cells) => [`${cells[1]}: ${cells[2]}`, cells.at(-2) ?? '']))('%s', (_, tests) => {
  const words = [...tests.matchAll(/`([^`]+)`/g)].map(([, word = '']) => word);
  expect(words).not.toEqual([]);
  for (const word of words) expect(filesOf(word), word).not.toEqual([]);
});

describe('the test of an attack has its line', () => {
  const files = readdirSync(path.join(ROOT, 'test/attacks')).filter((name) => name.endsWith('.test.ts'));
  test.each(files)('%s', (name) => {
    const [short = ''] = name.split('.');
    expect(PAGE.includes(`\`${short}\``) || PAGE.includes(`test/attacks/${name}`)).toBe(true);
  });
});
