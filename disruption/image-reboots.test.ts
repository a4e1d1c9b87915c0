import { expect, test } from 'vitest';
import { imageRebootsBecause } from './image-reboots.ts';

test('a host that can’t apply an image live reboots for each, and says why', () => {
  expect(imageRebootsBecause({ name: 'bootc', appliesLive: false })).toBe(
    'bootc keeps deployments in composefs on this host, where no image can be applied live',
  );
});

test.each([undefined, { name: 'bootc' }, { name: 'ostree', appliesLive: true }])(
  '%j doesn’t',
  (osBackend) => {
    expect(imageRebootsBecause(osBackend)).toBeUndefined();
  },
);
