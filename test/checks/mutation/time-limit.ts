import type { Project } from './nearest-tests.ts';

/** How many times the time of the unchanged code a mutant gets: a slow one is not an endless one. */
const FACTOR = 4;
/** ms; below this the start of a worker weighs more than the tests. */
const LEAST_MS: Readonly<Record<Project, number>> = { unit: 10_000, integration: 30_000 };
/** ms; a sample of 60 is to end within an hour or two also where some of its mutants never end. */
const MOST_MS: Readonly<Record<Project, number>> = { unit: 120_000, integration: 300_000 };

/**
 * How long the tests of a mutant may take. It is measured and not scaled by the machine's load, which says little of
 * these tests.
 *
 * @param unchangedMs what tests of the project take with the unchanged code.
 * @returns ms: four times that, within bounds, and always three times that: a bound must not kill what is only slow.
 */
export function timeLimitMs(project: Project, unchangedMs: number): number {
  const usual = Math.min(MOST_MS[project], Math.max(LEAST_MS[project], FACTOR * unchangedMs));
  return Math.max(usual, 3 * unchangedMs);
}
