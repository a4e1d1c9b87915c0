import { expect, test } from 'vitest';
import { imageRebootsBecause } from './image-reboots.ts';

test('a host that can’t apply an image live reboots for each, and says why', () => {
  expect(imageRebootsBecause({ name: 'bootc', appliesLive: false })).toBe(
    "bootc can't apply an image to the running system on this host",
  );
});

test.each([undefined, { name: 'bootc' }, { name: 'ostree', appliesLive: true }])(
  '%j doesn’t',
  (osBackend) => {
    expect(imageRebootsBecause(osBackend)).toBeUndefined();
  },
);
