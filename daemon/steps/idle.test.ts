import { expect, test } from 'vitest';
import { deployment, imageOf, observation, stepUnderTest } from '../../test/fixtures/step-context.ts';
import type { Current } from '../records/current.ts';
import { beIdle } from './idle.ts';

const current: Current = { version: 1, mode: 'Layered', config: 'rendered-1', image: imageOf('1') };

test('a node at its target deletes once what it no longer needs, and again after the next boot', async () => {
  let cleanups = 0;
  const { context, phases } = await stepUnderTest({
    backend: {
      status: async () => ({ booted: deployment('/booted', { image: imageOf('1') }) }),
      cleanup: async () => {
        cleanups += 1;
      },
    },
  });

  await beIdle(context, observation({ current }));
  await beIdle(context, observation({ current }));
  expect(cleanups).toBe(1);

  await beIdle(context, observation({ current, bootID: 'boot-2' }));
  expect(cleanups).toBe(2);
  expect(phases).toEqual([{ kind: 'updated' }, { kind: 'updated' }, { kind: 'updated' }]);
});

test('a node whose next boot could not be settled tries again', async () => {
  let cleanups = 0;
  let refusals = 1;
  const { context } = await stepUnderTest({
    backend: {
      status: async () => ({
        booted: deployment('/booted', { image: imageOf('1') }),
        staged: deployment('/staged', { image: imageOf('2') }),
      }),
      unstage: async () => {
        refusals -= 1;
        if (refusals === 0) throw new Error('the tool is busy');
      },
      cleanup: async () => {
        cleanups += 1;
      },
    },
  });

  await expect(beIdle(context, observation({ current }))).rejects.toThrow('the tool is busy');
  expect(cleanups).toBe(0);
  await beIdle(context, observation({ current }));
  expect(cleanups).toBe(1);
});
