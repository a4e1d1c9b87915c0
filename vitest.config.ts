import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/fixtures/longest-first.ts';
import { HOOK_MS, patience, TEST_MS } from './test/fixtures/patience.ts';
import { prepareRun } from './test/fixtures/prepare-run.ts';

// Before anything else: the deadlines below are scaled, too.
await prepareRun();

const cores = availableParallelism();

/**
 * A file's name says which project it is in, so that it moves with the file: `x.test.ts` is a unit test,
 * `x.integration.test.ts`, `x.e2e.test.ts` and `x.soak.test.ts` say themselves what they are. CONTRIBUTING.md has what
 * each may need.
 */
const needsMore = ['integration', 'e2e', 'soak'] as const;
// The image's packages (.image-packages) bring tests of their own. The root file systems below .shale have links to the
// machine's /run, and by it to the temporary files of runs, which link to the checkout.
const exclude = ['**/node_modules/**', '.shale/**'];

export default defineConfig({
  test: {
    // A test that needs a second try to pass hides a bug.
    retry: 0,
    reporters: ['default', './test/reporter.ts'],
    maxConcurrency: cores + 2,
    // Most wait for processes, disks and each other's leases more than they compute: with three more than cores, two
    // cores were idle for a third of the time. Unit tests come last, where the others leave time.
    maxWorkers: cores + 5,
    sequence: { sequencer: LongestFirst },
    expect: { poll: { timeout: patience(10_000) } },
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['**/*.test.ts'],
          exclude: [...exclude, ...needsMore.map((project) => `**/*.${project}.test.ts`)],
          // Unit tests change nothing that another file sees, and most of their time would go into importing again.
          isolate: false,
          testTimeout: patience(20_000),
          hookTimeout: patience(20_000),
        },
      },
      ...needsMore.map((project) => ({
        extends: true as const,
        test: {
          name: project,
          include: [`**/*.${project}.test.ts`],
          exclude,
          globalSetup: ['test/fixtures/bundle-programs.ts', 'test/fixtures/copied-directory.ts'],
          setupFiles: ['test/fixtures/attach-logs.ts'],
          testTimeout: patience(TEST_MS),
          hookTimeout: patience(HOOK_MS),
        },
      })),
    ],
  },
});
