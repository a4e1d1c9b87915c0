import { expect, test } from 'vitest';
import { missingRequirement } from './requirements.ts';

test('who is not root is told to be', async () => {
  expect(await missingRequirement(1000, '/usr/bin')).toBe(
    "the sandbox's nodes need root: run this as root, or with sudo",
  );
});

test('what is needed and there is not missed', async () => {
  const why = await missingRequirement(0, process.env['PATH'] ?? '');
  // On a machine without the packages this names them, and how to install them.
  if (why !== undefined)
    expect(why).toMatch(/^these Debian packages are needed .*make install installs them$/);
});
