/** All holders at random over whole rollouts in memory: a table has one holder at a time. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { HELD_EVENTS, type HeldScenario, HeldWorld } from '../test/fixtures/fleet/held-world.ts';
import { DRAIN, REBOOT, RESTART } from '../test/fixtures/objects.ts';
import { patience } from '../test/fixtures/patience.ts';
import { everyCase, seed } from '../test/fixtures/sample.ts';

const anyScenario: fc.Arbitrary<HeldScenario> = fc.record({
  nodes: fc.integer({ min: 1, max: 6 }),
  maxUnavailable: fc.integer({ min: 1, max: 3 }),
  plan: fc.constantFrom(REBOOT, REBOOT, DRAIN, RESTART),
  locks: fc.boolean(),
  controlPlane: fc.nat(3).map((draw) => draw === 0),
  events: fc.array(
    fc.record({
      what: fc.oneof(fc.constant('daemon' as const), fc.constantFrom(...HELD_EVENTS)),
      node: fc.nat(5),
      after: fc.nat(6),
    }),
    { minLength: 10, maxLength: 80, size: 'max' },
  ),
});

it(
  'a node that somebody else holds is neither disrupted nor written to, and the rollout ends once they all let go',
  async () => {
    await fc.assert(
      fc.asyncProperty(anyScenario, async (scenario) => {
        const world = new HeldWorld(scenario);
        for (const event of scenario.events) await world.apply(event);
        expect(world.violations).toEqual([]);
        expect(await world.calm()).toEqual([]);
        expect(world.violations).toEqual([]);
      }),
      everyCase ? { seed: 6, numRuns: 300, endOnFailure: true } : { seed, numRuns: 20, endOnFailure: true },
    );
  },
  patience(60_000),
);
