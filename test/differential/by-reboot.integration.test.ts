/** An image that a node boots leaves what standard mode writes of the same config (test/differential/README.md). */
import { expect, test } from 'vitest';
import { CASES_MS, tryCases } from './try-cases.ts';

test('random bases and configs: an image that is booted makes what standard mode writes', {
  timeout: CASES_MS,
}, async () => {
  const { tried, refused } = await tryCases('reboot', 600);
  // What is refused compares less.
  expect(refused / tried).toBeLessThan(0.5);
});
