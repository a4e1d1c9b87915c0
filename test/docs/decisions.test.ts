import { expect, test } from 'vitest';
import { decisionPages, linkedDecisions, problemsOfDecision } from './decisions.ts';

const decisions = decisionPages();

test.each(decisions.map((page) => [page.file, page] as const))('%s has all of its parts', (_, page) => {
  expect(problemsOfDecision(page)).toEqual([]);
});

test('code or a page links each decision, and each decision that they link exists', () => {
  expect([...linkedDecisions()].sort()).toEqual(decisions.map(({ file }) => file));
});

test('what a decision lacks is reported', () => {
  const page = {
    file: ['docs/decisions', '0099-a-b.md'].join('/'),
    text: '# A\n\naccepted\n\n## Context\n',
    blocks: [],
  };
  expect(problemsOfDecision(page, '')).toEqual([
    'its title does not begin with "# 0099. "',
    'it has no status below its title',
    'it has no "## Decision"',
    'it has no "## Consequences"',
    'the index does not list it with its title',
  ]);
});
