import fc from 'fast-check';
import { expect, it } from 'vitest';
import { deadline, patience } from '../fixtures/patience.ts';
import { everyCase, seed } from '../fixtures/sample.ts';
import { noDirectoryNodes } from '../fixtures/test-node.ts';
import { runWalk } from './run-walk.ts';
import { anyWalk } from './steps.ts';

const STEPS = 30;
const LIMIT_MS = 600_000;

// A failure prints the walk. With SHALE_SHRINK set, shorter walks are looked for that fail, too, which takes a while.
it.skipIf(noDirectoryNodes !== undefined)(
  'a node does what shale plan has said, and is then what its config says',
  async () => {
    let steps = 0;
    await fc.assert(
      fc.asyncProperty(anyWalk(STEPS), async (walk) => {
        const costs = await runWalk(walk, deadline(LIMIT_MS));
        for (const count of costs.values()) steps += count;
      }),
      {
        seed,
        numRuns: everyCase ? 100 : 2,
        endOnFailure: process.env['SHALE_SHRINK'] === undefined,
      },
    );
    // What is refused, and a base that nobody asks for, changes nothing.
    expect(steps).toBeGreaterThan(STEPS / 2);
  },
  patience(everyCase ? 100 * LIMIT_MS : 2 * LIMIT_MS),
);
