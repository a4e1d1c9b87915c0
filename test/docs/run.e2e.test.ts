import { afterAll, beforeAll, describe, test } from 'vitest';
import { allPages, type Page } from './pages.ts';
import { isRun } from './rules.ts';
import { runPage, type SharedSandbox, shareSandbox } from './run-page.ts';

/** Every command of every page that a machine like this one can run. A page that needs a cluster starts a sandbox. */

const MINUTES = 60_000;

/**
 * Pages that need a cluster and mind nothing that those before them leave in it. A sandbox costs more than most of them, so
 * they share one, in this order: the last four change pools and processes.
 */
const SHARING = [
  'docs/runbooks.md',
  'docs/how-to/egress-proxy.md',
  'docs/how-to/gitops-health.md',
  'docs/reference/operator.md',
  'docs/how-to/new-nodes.md',
  'docs/live-page.md',
  'docs/how-to/notifications.md',
  'docs/supply-chain.md',
  'docs/how-to/next-reboot.md',
  'docs/how-to/stuck-node.md',
  'docs/how-to/maintenance.md',
  'docs/how-to/staged-rollouts.md',
  'docs/tracing.md',
];

const pages = new Map(
  allPages()
    .filter(({ blocks }) => blocks.some(isRun))
    .map((page) => [page.file, page]),
);
const named = (files: readonly string[]) =>
  files.map((file): [string, Page] => {
    const page = pages.get(file);
    if (page === undefined) throw new Error(`${file}: no such page, or it has no commands that a test runs`);
    return [file, page];
  });

// Each has a network, a home and a sandbox of its own.
describe.concurrent.each(named([...pages.keys()].filter((file) => !SHARING.includes(file))))(
  '%s',
  (_, page) => {
    test('its commands do what it says', () => runPage(page), 20 * MINUTES);
  },
);

describe.concurrent('on a shared sandbox', () => {
  let shared: SharedSandbox | undefined;
  beforeAll(async () => {
    shared = await shareSandbox();
  }, 20 * MINUTES);
  afterAll(() => shared?.close(), 2 * MINUTES);

  describe.each(named(SHARING))('%s', { concurrent: false }, (_, page) => {
    test('its commands do what it says', () => runPage(page, shared?.surroundings), 20 * MINUTES);
  });
});
