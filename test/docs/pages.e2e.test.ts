/** Holds every page against what there is, without running anything of it: run.test.ts does that. */
import { describe, expect, test } from 'vitest';
import { patience } from '../fixtures/patience.ts';
import { ELSEWHERE } from './elsewhere.ts';
import {
  brokenLinks,
  commandsElsewhere,
  problemsOfCommands,
  problemsOfContents,
  unmarkedBlocks,
  unsaidSetUp,
} from './page-problems.ts';
import { allPages } from './pages.ts';

const pages = allPages();

test('there are pages', () => {
  expect(pages.map(({ file }) => file)).toEqual(expect.arrayContaining(['README.md', 'docs/tutorial.md']));
});

test('of each command that no test runs it is written down why', () => {
  const left = pages.map((page): [string, readonly string[]] => [page.file, commandsElsewhere(page)]);
  const known = Object.entries(ELSEWHERE).map(([file, reasons]) => [file, Object.keys(reasons)]);
  expect(Object.fromEntries(left.filter(([, commands]) => commands.length > 0))).toEqual(
    Object.fromEntries(known),
  );
});

describe.each(pages.map((page) => [page.file, page] as const))('%s', (_, page) => {
  test('its blocks say what they are', () => {
    expect(unmarkedBlocks(page)).toEqual([]);
  });

  test(
    'its commands are ones that there are',
    () => {
      expect(problemsOfCommands(page)).toEqual([]);
    },
    patience(120_000),
  ); // kubectl is asked for its help once for each of its commands.

  test('its objects are as their kinds ask', () => {
    expect(problemsOfContents(page)).toEqual([]);
  });

  test('it says what its commands need that its test starts', () => {
    expect(unsaidSetUp(page)).toEqual([]);
  });

  test('its links lead somewhere', () => {
    expect(brokenLinks(page)).toEqual([]);
  });
});
