import { pino } from 'pino';
import { expect, test } from 'vitest';
import { deadline } from '../test/fixtures/patience.ts';
import { type ControllerOptions, done, resyncAtRandom, runController } from './controller.ts';
import { createWorkQueue } from './work-queue.ts';

/** Runs a controller without any event until it has made so many passes. @returns the keys of these. */
async function passesOf(count: number, options: Partial<ControllerOptions>): Promise<readonly string[]> {
  const stop = new AbortController();
  const passes: string[] = [];
  await runController({
    name: 'test',
    queue: createWorkQueue(),
    workers: 2,
    reconcile: async (key) => {
      passes.push(key);
      if (passes.length === count) stop.abort();
      return done;
    },
    log: pino({ level: 'silent' }),
    signal: AbortSignal.any([stop.signal, deadline(10_000)]),
    ...options,
  });
  return passes;
}

test('all keys come again without an event, also those that are new', async () => {
  const keys = ['a'];
  const allKeys = () => [...keys.splice(0, keys.length, 'a', 'b')];
  const passes = await passesOf(5, { allKeys, resyncMs: () => 1 });
  expect(passes).toEqual(['a', 'a', 'b', 'a', 'b']);
});

test('a controller that is stopped does not wait for that', async () => {
  const queue = createWorkQueue();
  queue.add('once');
  const allKeys = () => {
    throw new Error('not before twenty minutes are over');
  };
  expect(await passesOf(1, { queue, allKeys })).toEqual(['once']);
  expect([0, 0.5, 1].map((random) => resyncAtRandom(random) / 60_000)).toEqual([20, 30, 40]);
});
