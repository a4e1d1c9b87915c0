/** An image that is applied to the running root leaves what standard mode writes (test/differential/README.md). */
import { expect, test } from 'vitest';
import { CASES_MS, tryCases } from './try-cases.ts';

test('random bases and configs: an image that is applied live makes what standard mode writes', {
  timeout: CASES_MS,
}, async () => {
  const { tried, refused } = await tryCases('live', 400);
  // What is refused compares less.
  expect(refused / tried).toBeLessThan(0.5);
});
