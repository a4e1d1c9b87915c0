import { expect, test } from 'vitest';
import { differingIn, formatDriftMessage } from './drift-message.ts';

test.each([
  '/etc/a: is not there',
  '/etc/a. Revert the change, put it elsewhere: is there; and 2 more paths',
])('what differs is read from the message as it was given: %s', (differing) => {
  const message = formatDriftMessage(differing);
  expect(message).toContain(
    'run shale repair for the node, or create /run/machine-config-daemon-force on it',
  );
  expect(differingIn(message)).toBe(differing);
  // A condition holds only the start of a long message.
  const start = message.slice(0, message.indexOf(differing) + 6);
  expect(differingIn(start)).toBe(differing.slice(0, 6));
});

test('other messages are about no drift', () => {
  expect(differingIn('The node runs its target')).toBeUndefined();
});
