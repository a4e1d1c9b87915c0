import { describe, expect, it } from 'vitest';
import { reportPullProgress } from './pull-progress.ts';

const layers = [
  { name: 'a', size: 10 },
  { name: 'b', size: 5 },
];

describe('reportPullProgress', () => {
  it('counts the layers that have arrived, until the pull ends', async () => {
    const ended = new AbortController();
    const told: string[] = [];
    const looks: string[][] = [[], ['a'], ['a', 'b', 'c']];
    await reportPullProgress(
      {
        layers,
        arrived: async () => {
          const there = looks.shift() ?? [];
          return ({ name }) => there.includes(name);
        },
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
    const arrived = async () => {
      looks += 1;
      if (looks === 1) throw new Error('EIO: i/o error');
      return ({ name }: { readonly name: string }) => name === 'a';
    };
    const onProgress = (done: number, total: number) => {
      told.push(`${done}/${total}`);
      ended.abort();
    };
    await reportPullProgress({ layers, arrived, onProgress, everyMs: 1 }, ended.signal);
    expect(told).toEqual(['10/15']);
  });
});
