import { expect, test } from 'vitest';
import { spaceProblem } from './keep-images.ts';

const GIB = 1024 ** 3;

test.each([
  [1, 18, undefined],
  [
    1,
    17.9,
    'too little space in /var/lib/containers: the images may take 2048 MiB, 18330 MiB are free, and 16384 MiB have to stay free',
  ],
  [0, 16, undefined],
])('%d GiB to fetch with %d GiB free: %s', (fetched, free, problem) => {
  const estimate = {
    fetched: fetched * GIB,
    free: free * GIB,
    reserve: 16 * GIB,
    directory: '/var/lib/containers',
  };
  expect(spaceProblem(estimate)).toBe(problem);
});
