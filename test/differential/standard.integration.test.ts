/** Standard mode, from config to config, leaves what the last one says (test/differential/README.md). */
import { expect, test } from 'vitest';
import { CASES_MS, tryCases } from './try-cases.ts';

test('random bases and configs: standard mode goes from config to config and back', {
  timeout: CASES_MS,
}, async () => {
  const { tried, refused } = await tryCases('standard', 500);
  // What is refused compares less.
  expect(refused / tried).toBeLessThan(0.5);
});
