import { expect, test } from 'vitest';
import { missingRequirement } from './requirements.ts';

test('a user other than root is asked to run it as root', () => {
  expect(missingRequirement(1000, '/usr/bin')).toBe(
    "the sandbox's nodes require root: run the command as root or with sudo",
  );
});

test('packages that are missing are named, with what installs them', () => {
  expect(missingRequirement(0, '/no/such/directory')).toMatch(
    /^these Debian packages are required and not installed: .*ostree.*; run make install$/,
  );
});
