/** A blob beyond 4 GiB, where a length of 32 bits would end: minutes of hashing, so not in every run. */
import { expect, test } from 'vitest';
import { parseDigest } from '../../api/references.ts';
import { deadline, patience } from '../../test/fixtures/patience.ts';
import { copyLimits, copyWatched } from '../../test/fixtures/registry/watched-copy.ts';
import { isDrawn } from '../../test/fixtures/sample.ts';

const GIB = 1024 * 1024 * 1024;

/** Digests of as many bytes that are zero: `head -c 5G /dev/zero | sha256sum`. Hashing is what takes the time. */
const DIGESTS: Readonly<Record<string, string>> = {
  '5': 'sha256:7f06c62352aebd8125b2a1841e2b9e1ffcbed602f381c3dcb3200200e383d1d5',
  '10': 'sha256:732377e7f4a2abdc13ddfa1eb4c9c497fd2a2b294674d056cf51581b47dd586d',
};
/** Beyond 4 GiB, where a length of 32 bits would end. */
const SIZE_GIB = process.env['SHALE_LARGE_BLOB_GIB'] ?? '5';
const LIMIT_MS = 300_000;

test.skipIf(!isDrawn('blob of 5 GiB'))(
  `a blob of ${SIZE_GIB} GiB goes from one registry to another in the memory that a small one takes`,
  async () => {
    const size = Number(SIZE_GIB) * GIB;
    const blob = { digest: parseDigest(DIGESTS[SIZE_GIB] ?? ''), size };
    const { stored, inFlight, held } = await copyWatched(blob, 40, deadline(LIMIT_MS));
    expect(stored).toBe(size);
    expect(inFlight).toBeLessThanOrEqual(copyLimits.inFlight);
    expect(held).toBeLessThanOrEqual(copyLimits.held);
  },
  patience(LIMIT_MS),
);
