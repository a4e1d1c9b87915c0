/** Images booted and applied in turns leave what standard mode writes (test/differential/README.md). */
import { expect, test } from 'vitest';
import { CASES_MS, tryCases } from './try-cases.ts';

test('random bases and configs: images that are booted and applied live in turns make what standard mode writes', {
  timeout: CASES_MS,
}, async () => {
  const { tried, refused } = await tryCases('in turns', 200);
  // What is refused compares less.
  expect(refused / tried).toBeLessThan(0.5);
});
