import { expect, test } from 'vitest';
import { commit } from './campaign.ts';
import type { Fault, Stage } from './faults/fault.ts';

/** @returns what a campaign records of a fault whose time is over at once. */
async function recorded(fault: Pick<Fault, 'begin' | 'end' | 'details'>): Promise<readonly string[]> {
  const words: string[] = [];
  const record = ({ phase, details }: { readonly phase: string; readonly details: string }) =>
    void words.push(`${phase}: ${details}`);
  const stage = { world: { recorder: { record } } } as unknown as Stage;
  await commit(stage, { kind: 'full disk', subject: 'all', ...fault }, AbortSignal.abort());
  return words;
}

const fails = async () => {
  throw new Error('no such mount');
};

test('a fault is recorded with what it came to', async () => {
  expect(await recorded({ details: 'for 5 ms', begin: async () => 'was full' })).toEqual([
    'begins: for 5 ms; was full',
  ]);
});

test('a fault that can not be brought about is recorded, and ended all the same', async () => {
  let ended = false;
  const end = async () => {
    ended = true;
  };
  expect(await recorded({ begin: fails, end })).toEqual(['fails: begins: no such mount', 'ends: ']);
  expect(ended).toBe(true);
});

test('a fault that can not be ended is recorded', async () => {
  expect(await recorded({ begin: async () => undefined, end: fails })).toEqual([
    'begins: ',
    'fails: ends: no such mount',
  ]);
});
