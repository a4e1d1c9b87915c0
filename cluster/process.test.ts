import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { endTogether, type ProcessPart } from './process.ts';

/** Work that goes on until its signal, and then for a while. */
function part() {
  const state = { isRunning: false };
  const work: ProcessPart = async (signal) => {
    state.isRunning = true;
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    await setImmediate();
    state.isRunning = false;
  };
  return { state, work };
}

test('all parts run until the signal, and the end is that of the last', async () => {
  const stop = new AbortController();
  const parts = [part(), part()];
  const ended = endTogether([...parts.map(({ work }) => work), async () => undefined], stop.signal);
  await setImmediate();
  expect(parts.map(({ state }) => state.isRunning)).toEqual([true, true]);
  stop.abort();
  await ended;
  expect(parts.map(({ state }) => state.isRunning)).toEqual([false, false]);
});

test('a part that fails ends the others, and its error is the one that is thrown', async () => {
  const { state, work } = part();
  const first = new Error('the first');
  const breaksOff: ProcessPart = async (signal) => {
    await work(signal);
    throw new Error('because of the first');
  };
  const fails: ProcessPart = async () => {
    await setImmediate();
    throw first;
  };
  await expect(endTogether([breaksOff, fails], new AbortController().signal)).rejects.toBe(first);
  expect(state.isRunning).toBe(false);
});

test('a part that fails because of the signal is an error, too', async () => {
  const stop = new AbortController();
  const { work } = part();
  const reason = new Error('cannot end');
  const breaksOff: ProcessPart = (signal) =>
    work(signal).then(() => {
      throw reason;
    });
  const ended = endTogether([breaksOff], stop.signal);
  stop.abort();
  await expect(ended).rejects.toBe(reason);
});
