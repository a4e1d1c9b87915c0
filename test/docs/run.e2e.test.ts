/** Every command of every page that a machine like this one can run. A page that needs a cluster starts a sandbox. */
import { afterAll, beforeAll, describe, test } from 'vitest';
import { allPages, type Page } from './pages.ts';
import { isRun } from './rules.ts';
import { runPage, type SharedSandbox, shareSandbox } from './run-page.ts';

const MINUTES = 60_000;

/**
 * Pages that share a sandbox, because it costs more than most of them: in this order, as each minds nothing that those
 * before it leave in the cluster, or begins with it. Each also runs alone on a new one.
 */
const SHARING = {
  // The last four change pools and processes.
  'standard mode': [
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
  ],
  // The first layers nothing, and the second returns its trial pool to the stock image. The third layers that pool from
  // there and updates the nodes that are left in worker, so the last is the one that moves them to a pool, which it
  // layers.
  'layering for a pool of its own': [
    'docs/explanation/from-mco.md',
    'docs/how-to/enable-on-bootc.md',
    'docs/how-to/enable-on-rpm-ostree.md',
    'docs/explanation/bootc-operator.md',
  ],
  // The first layers every pool from standard mode, and the others begin with that. The history of the second has no
  // other base image yet, which the third sets, and the last uninstalls.
  'layering for all pools': [
    'docs/how-to/enable-on-ostree.md',
    'docs/how-to/go-back.md',
    'docs/how-to/custom-containerfile.md',
    'docs/install.md',
  ],
};

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

// First, because they take longest.
describe.concurrent.each(Object.entries(SHARING))('on a sandbox for %s', (_, files) => {
  let shared: SharedSandbox | undefined;
  beforeAll(async () => {
    shared = await shareSandbox();
  }, 20 * MINUTES);
  afterAll(() => shared?.close(), 2 * MINUTES);

  describe.each(named(files))('%s', { concurrent: false }, (_file, page) => {
    test('its commands do what it says', () => runPage(page, shared?.surroundings), 20 * MINUTES);
  });
});

// Each has a network, a home and a sandbox of its own.
const shared = new Set(Object.values(SHARING).flat());
describe.concurrent.each(named([...pages.keys()].filter((file) => !shared.has(file))))('%s', (_, page) => {
  test('its commands do what it says', () => runPage(page), 20 * MINUTES);
});
