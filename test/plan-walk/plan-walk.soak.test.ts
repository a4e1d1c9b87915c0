/** Random changes planned and then made on a node: what the plan said is what happened. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { deadline, patience } from '../fixtures/patience.ts';
import { everyCase, sample, seed } from '../fixtures/sample.ts';
import { noDirectoryNodes } from '../fixtures/test-node.ts';
import { runWalk } from './run-walk.ts';
import { slots } from './slots.ts';
import { anyWalk, restartOwn, type Walk, type WalkStep } from './steps.ts';

const STEPS = 30;
const LIMIT_MS = 600_000;

/** @returns a step that gives a slot other contents. */
const edit = (name: string, variant: number): WalkStep => ({
  kind: 'edit',
  edits: [{ slot: slots.findIndex((slot) => slot.name === name), variant }],
});
const layering: WalkStep = { kind: 'layering' };
const boot: WalkStep = { kind: 'boot' };

/** What a random walk seldom meets. */
const KNOWN: readonly Walk[] = [
  // A unit that the base enables is disabled, by both modes and at each turn.
  {
    start: slots.map(({ name }) => (name === 'stock-unit' ? 1 : 0)),
    base: 'digest',
    steps: [
      layering,
      boot,
      edit('stock-unit', 0),
      edit('stock-unit', 1),
      boot,
      { kind: 'base' },
      edit('stock-unit', 2),
      edit('stock-unit', 1),
      layering,
      edit('stock-unit', 0),
      layering,
    ],
  },
  // Keys come and go, which sshd has to be told in layered mode.
  {
    start: slots.map(() => 0),
    base: 'digest',
    steps: [
      layering,
      edit('keys', 1),
      edit('keys', 2),
      edit('keys', 0),
      layering,
      edit('keys', 1),
      layering,
      boot,
    ],
  },
  // A policy restarts a unit that the config masks, and one that it takes away.
  ...[true, false].map(
    (isLayered): Walk => ({
      start: slots.map(({ name }) => (name === 'own-unit' ? 1 : 0)),
      base: 'digest',
      steps: [
        { kind: 'policy', ...restartOwn },
        ...(isLayered ? [layering] : []),
        edit('own-unit', 3),
        edit('own-unit', 5),
        edit('own-unit', 1),
        edit('own-unit', 3),
        edit('own-unit', 0),
        edit('own-unit', 5),
        edit('own-unit', 0),
      ],
    }),
  ),
];

const drawn = sample('known walks', [...KNOWN.entries()], 1);

it.skipIf(noDirectoryNodes !== undefined).each(drawn)(
  'a node does what shale plan has said on known walk %i',
  async (_, walk) => {
    await runWalk(walk, deadline(LIMIT_MS));
  },
  patience(LIMIT_MS),
);

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
        numRuns: everyCase ? 100 : 1,
        endOnFailure: process.env['SHALE_SHRINK'] === undefined,
      },
    );
    // What is refused, and a base that nobody asks for, changes nothing.
    expect(steps).toBeGreaterThan(STEPS / 2);
  },
  patience(everyCase ? 100 * LIMIT_MS : LIMIT_MS),
);
