import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { isTestFile, readImportGraph } from '../checks/import-graph.ts';

/** What writes to a terminal, or gives a stream of it to what does. */
const WRITES =
  /\bconsole\.|\bprocess\.(stdout|stderr)\b(?!\.(isTTY|columns|rows)\b)|\bwriteSync\(|\/dev\/(tty|std)/;

/** The files of the commands that do, and what they write. */
const MAY_WRITE: Readonly<Record<string, string>> = {
  'cli/command-line/output.ts': 'the one place: text with escapes, and the sequences that redraw lines',
  'cli/command-line/confirm.ts': 'a question with escapes, by readline',
  'cli/command-line/closed-pipe.ts': 'nothing: it listens for errors',
};

test('the commands write to the terminal in one place', () => {
  const root = path.join(import.meta.dirname, '../..');
  const files = [...readImportGraph(root, ['cli']).keys()].filter((file) => !isTestFile(file));
  const writing = files.filter((file) => WRITES.test(readFileSync(path.join(root, file), 'utf8')));
  expect(files.length).toBeGreaterThan(80);
  expect(writing.sort()).toEqual(Object.keys(MAY_WRITE).sort());
});
