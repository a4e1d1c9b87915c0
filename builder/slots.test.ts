import { expect, test } from 'vitest';
import { Slots } from './slots.ts';

const never = new AbortController().signal;

test('no more work runs at once than there are slots, in the order in which it came', async () => {
  const slots = new Slots(2);
  const running: string[] = [];
  const ends = new Map<string, () => void>();
  const work = (name: string) =>
    slots.run(never, async () => {
      running.push(name);
      await new Promise<void>((resolve) => ends.set(name, resolve));
      return name;
    });
  const all = ['a', 'b', 'c', 'd'].map(work);
  await Promise.resolve();
  expect(running).toEqual(['a', 'b']);
  ends.get('b')?.();
  await all[1];
  await new Promise(setImmediate);
  expect(running).toEqual(['a', 'b', 'c']);
  ends.get('a')?.();
  ends.get('c')?.();
  await new Promise(setImmediate);
  ends.get('d')?.();
  expect(await Promise.all(all)).toEqual(['a', 'b', 'c', 'd']);
});

test('work that fails gives its slot back', async () => {
  const slots = new Slots(1);
  await expect(slots.run(never, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(await slots.run(never, async () => 1)).toBe(1);
});

test('an aborted waiter leaves the queue, and the next one gets the slot', async () => {
  const slots = new Slots(1);
  let end = () => {};
  const first = slots.run(never, () => new Promise<void>((resolve) => (end = resolve)));
  const aborting = new AbortController();
  const second = slots.run(aborting.signal, async () => 'second');
  const third = slots.run(never, async () => 'third');
  aborting.abort(new Error('stopped'));
  await expect(second).rejects.toThrow('stopped');
  end();
  await first;
  expect(await third).toBe('third');
  expect(await slots.run(never, async () => 'again')).toBe('again');
});

test('a signal that is aborted already takes no slot', async () => {
  const slots = new Slots(1);
  await expect(slots.run(AbortSignal.abort(new Error('off')), async () => 1)).rejects.toThrow('off');
  expect(await slots.run(never, async () => 1)).toBe(1);
});
