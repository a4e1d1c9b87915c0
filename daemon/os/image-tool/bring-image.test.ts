import { describe, expect, it } from 'vitest';
import { layerRefOf, reportPullProgress } from './bring-image.ts';

const digest = (digit: string) => `sha256:${digit.repeat(64)}`;
const layers = [
  { digest: digest('a'), size: 10 },
  { digest: digest('b'), size: 5 },
];

describe('reportPullProgress', () => {
  it('counts the layers that have arrived, until the pull ends', async () => {
    const ended = new AbortController();
    const told: string[] = [];
    const looks = [[], ['a'], ['a', 'b', 'c']];
    await reportPullProgress(
      {
        layers,
        refs: async () => new Set(looks.shift()?.map((digit) => layerRefOf(digest(digit)))),
        onProgress: (done, total) => {
          told.push(`${done}/${total}`);
          if (looks.length === 0) ended.abort();
        },
        everyMs: 1,
      },
      ended.signal,
    );
    expect(told).toEqual(['0/15', '10/15', '15/15']);
  });

  it('leaves a look out that could not be taken', async () => {
    const ended = new AbortController();
    const told: string[] = [];
    let looks = 0;
    const refs = async () => {
      looks += 1;
      if (looks === 1) throw new Error('EIO: i/o error');
      return new Set([layerRefOf(digest('a'))]);
    };
    const onProgress = (done: number, total: number) => {
      told.push(`${done}/${total}`);
      ended.abort();
    };
    await reportPullProgress({ layers, refs, onProgress, everyMs: 1 }, ended.signal);
    expect(told).toEqual(['10/15']);
  });
});

describe('layerRefOf', () => {
  it('names layers as ostree’s container code does', () => {
    expect(layerRefOf(digest('a'))).toBe(`ostree/container/blob/sha256_3A_${'a'.repeat(64)}`);
  });
});
