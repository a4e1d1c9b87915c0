import { describe, expect, it } from 'vitest';
import { OsCommandError } from '../os-command.ts';
import { tellPullProgress } from './pull-progress.ts';
import { layerRefOf } from './pulled-layers.ts';

const digest = (digit: string) => `sha256:${digit.repeat(64)}`;
const layers = [
  { digest: digest('a'), size: 10 },
  { digest: digest('b'), size: 5 },
];

describe('tellPullProgress', () => {
  it('counts the layers that have arrived, until the pull ends', async () => {
    const ended = new AbortController();
    const told: string[] = [];
    const looks = [[], ['a'], ['a', 'b', 'c']];
    await tellPullProgress(
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

  it('says no more when it can’t look', async () => {
    const refs = async () => {
      throw new OsCommandError(['ostree', 'refs'], 'exit code 1', { stderr: '' });
    };
    const until = new AbortController().signal;
    await tellPullProgress({ layers, refs, onProgress: () => undefined, everyMs: 1 }, until);
  });
});

describe('layerRefOf', () => {
  it('names layers as ostree’s container code does', () => {
    expect(layerRefOf(digest('a'))).toBe(`ostree/container/blob/sha256_3A_${'a'.repeat(64)}`);
  });
});
