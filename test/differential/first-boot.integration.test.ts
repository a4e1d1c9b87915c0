/** A machine that is installed with an image has what standard mode writes (test/differential/README.md). */
import { expect, test } from 'vitest';
import { CASES_MS, tryCases } from './try-cases.ts';

test('random bases and configs: a machine that is installed with an image has what standard mode writes', {
  timeout: CASES_MS,
}, async () => {
  const { tried, refused } = await tryCases('first boot', 500);
  // What is refused compares less.
  expect(refused / tried).toBeLessThan(0.5);
});
