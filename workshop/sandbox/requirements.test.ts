import { expect, test } from 'vitest';
import { missingRequirement } from './requirements.ts';

test('who is not root is told to be', async () => {
  expect(await missingRequirement(1000, '/usr/bin')).toBe(
    "the sandbox's nodes need root: run this as root, or with sudo",
  );
});

test('packages that are missing are named, with what installs them', async () => {
  const why = await missingRequirement(0, '/no/such/directory');
  expect(why).toMatch(
    /^these Debian packages are needed and not installed: .*ostree.*; make install installs them$/,
  );
});
