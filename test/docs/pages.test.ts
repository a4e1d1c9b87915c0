import { describe, expect, test } from 'vitest';
import { ELSEWHERE } from './elsewhere.ts';
import {
  brokenLinks,
  commandsElsewhere,
  problemsOfCommands,
  problemsOfContents,
  unmarkedBlocks,
} from './page-problems.ts';
import { allPages } from './pages.ts';

/** Holds every page against what there is, without running anything of it: run.test.ts does that. */

const pages = allPages();

test('there are pages', () => {
  expect(pages.map(({ file }) => file)).toEqual(expect.arrayContaining(['README.md', 'docs/tutorial.md']));
});

test('commands that no test runs are as many as is written down', () => {
  const counts = pages.map((page): [string, number] => [page.file, commandsElsewhere(page)]);
  expect(Object.fromEntries(counts.filter(([, count]) => count > 0))).toEqual(ELSEWHERE);
});

describe.each(pages.map((page) => [page.file, page] as const))('%s', (_, page) => {
  test('its blocks say what they are', () => {
    expect(unmarkedBlocks(page)).toEqual([]);
  });

  test('its commands are ones that there are', async () => {
    expect(await problemsOfCommands(page)).toEqual([]);
  }, 120_000); // kubectl is asked for its help once for each of its commands.

  test('its objects are as their kinds ask', () => {
    expect(problemsOfContents(page)).toEqual([]);
  });

  test('its links lead somewhere', () => {
    expect(brokenLinks(page)).toEqual([]);
  });
});
