/** Random rollouts against the model's promises: thousands of passes, so not in every run. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { DisruptionAction } from '../api/disruption-action.ts';
import {
  DRIVEN_EVENTS,
  ROLLOUT_EVENTS,
  type RolloutScenario,
  RolloutWorld,
} from '../test/fixtures/fleet/rollout-world.ts';
import { patience } from '../test/fixtures/patience.ts';
import { everyCase, seed } from '../test/fixtures/sample.ts';

const PLANS: readonly (readonly DisruptionAction[])[] = [
  [{ type: 'Reboot' }],
  [{ type: 'Drain' }, { type: 'Reload', service: 'crio.service' }],
  [{ type: 'Restart', service: 'chronyd.service' }],
];

const scenarioOf = <What extends (typeof DRIVEN_EVENTS)[number]>(
  events: readonly What[],
  often: fc.Arbitrary<What>,
): fc.Arbitrary<RolloutScenario> =>
  fc.record({
    nodes: fc.integer({ min: 1, max: 6 }),
    maxUnavailable: fc.integer({ min: 1, max: 3 }),
    // Rollouts that stay at their first node test little else.
    bakes: fc.nat(3).map((draw) => draw === 0),
    hooks: fc.boolean(),
    plans: fc.array(fc.constantFrom(...PLANS), { minLength: 6, maxLength: 6 }),
    events: fc.array(
      fc.record({
        what: fc.oneof(often, fc.constantFrom(...events)),
        node: fc.nat(5),
        after: fc.nat(6),
      }),
      { minLength: 10, maxLength: 60, size: 'max' },
    ),
  });

// A daemon that works is what happens most, or no rollout would come far.
const anyScenario = scenarioOf(ROLLOUT_EVENTS, fc.constant('daemon'));
const anyDrivenScenario = scenarioOf(DRIVEN_EVENTS, fc.constantFrom('daemon', 'daemon', 'hand-over')).map(
  (scenario) => ({ ...scenario, bakes: false, driven: true as const }),
);

it.each([
  ['a rollout', anyScenario],
  ['a rollout that Cluster API drives', anyDrivenScenario],
])(
  '%s ends with every node updated and free, and keeps its promises whatever happens on the way',
  async (_, scenarios) => {
    await fc.assert(
      fc.asyncProperty(scenarios, async (scenario) => {
        const world = new RolloutWorld(scenario);
        for (const event of scenario.events) await world.apply(event);
        expect(world.violations).toEqual([]);
        expect(await world.calm()).toEqual([]);
        expect(world.violations).toEqual([]);
      }),
      everyCase ? { seed: 6, numRuns: 150, endOnFailure: true } : { seed, numRuns: 15, endOnFailure: true },
    );
  },
  patience(60_000),
);
