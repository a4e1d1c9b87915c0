import { describe, test } from 'vitest';
import { allPages } from './pages.ts';
import { isRun } from './rules.ts';
import { runPage } from './run-page.ts';

/** Every command of every page that a machine like this one can run. A page that needs a cluster starts a sandbox. */

const MINUTES = 60_000;
const pages = allPages().filter(({ blocks }) => blocks.some(isRun));

// Each has a network, a home and a sandbox of its own.
describe.concurrent.each(pages.map((page) => [page.file, page] as const))('%s', (_, page) => {
  test('its commands do what it says', () => runPage(page), 20 * MINUTES);
});
