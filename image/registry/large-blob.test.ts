import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { deadline } from '../../test/fixtures/patience.ts';
import { copyLimits, copyWatched, zeros } from '../../test/fixtures/registry/watched-copy.ts';
import { digestOfHash } from '../digest.ts';

const MIB = 1024 * 1024;
/** Twice what may be held of it. */
const SIZE = 192 * MIB;

test('of a large blob a few pieces are held at a time', async () => {
  const hash = createHash('sha256');
  for (const chunk of zeros(SIZE)) hash.update(chunk);
  const { stored, inFlight, held } = await copyWatched(
    { digest: digestOfHash(hash), size: SIZE },
    4,
    deadline(15_000),
  );
  expect(stored).toBe(SIZE);
  expect(inFlight).toBeLessThanOrEqual(copyLimits.inFlight);
  expect(held).toBeLessThanOrEqual(copyLimits.held);
});
