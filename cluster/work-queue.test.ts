import { expect, test } from 'vitest';
import { createWorkQueue, type Timers } from './work-queue.ts';

/** Time that passes when the test says so. */
function virtualTime() {
  let now = 0;
  const planned = new Map<object, { readonly at: number; readonly callback: () => void }>();
  const timers: Timers = {
    set(callback, ms) {
      const timer = {};
      planned.set(timer, { at: now + ms, callback });
      return timer;
    },
    clear: (timer) => void planned.delete(timer as object),
  };
  return {
    timers,
    now: () => now,
    pass(ms: number) {
      now += ms;
      for (const [timer, { at, callback }] of [...planned]) {
        if (at > now) continue;
        planned.delete(timer);
        callback();
      }
    },
  };
}

const queueWith = (time = virtualTime()) => ({
  time,
  queue: createWorkQueue({
    timers: time.timers,
    now: time.now,
    random: () => 0,
    backoff: { firstMs: 100, longestMs: 400 },
  }),
});

test('a key that is added twice is taken once', async () => {
  const { queue } = queueWith();
  queue.add('a');
  queue.add('a');
  queue.add('b');
  expect([await queue.take(), await queue.take()]).toEqual(['a', 'b']);
});

test('a key that is added while it is worked on comes again afterwards, and not before', async () => {
  const { queue } = queueWith();
  queue.add('a');
  await queue.take();
  queue.add('a');
  queue.add('b');
  expect(await queue.take()).toBe('b');
  queue.finish('a');
  expect(await queue.take()).toBe('a');
});

test('a key that rests comes again once, after its rest', async () => {
  const { queue, time } = queueWith();
  queue.add('a');
  await queue.take();
  queue.finish('a', 100);
  queue.add('a');
  queue.addAfter('a', 50);
  const taken = queue.take();
  time.pass(99);
  expect(await Promise.race([taken, Promise.resolve('none')])).toBe('none');
  time.pass(1);
  expect(await taken).toBe('a');
  queue.finish('a');
  queue.add('b');
  expect(await queue.take()).toBe('b');
});

test('a caller that waits gets the next key', async () => {
  const { queue } = queueWith();
  const waiting = queue.take();
  queue.add('a');
  expect(await waiting).toBe('a');
});

test('the earlier of two times stands', async () => {
  const { queue, time } = queueWith();
  const waiting = queue.take();
  queue.addAfter('a', 500);
  queue.addAfter('a', 100);
  queue.addAfter('a', 900);
  time.pass(100);
  expect(await waiting).toBe('a');
});

test('the back-off doubles up to its limit and ends with forget', async () => {
  const { queue, time } = queueWith();
  const delays: number[] = [];
  for (let failure = 0; failure < 4; failure += 1) {
    queue.addRateLimited('a');
    const from = time.now();
    const taken = queue.take();
    for (;;) {
      time.pass(50);
      if ((await Promise.race([taken, Promise.resolve('none')])) === 'a') break;
    }
    delays.push(time.now() - from);
    queue.finish('a');
  }
  expect(delays).toEqual([100, 200, 400, 400]);
  queue.forget('a');
  queue.addRateLimited('a');
  time.pass(100);
  expect(await queue.take()).toBe('a');
});

test('shutting down wakes everybody and drops what waits', async () => {
  const { queue } = queueWith();
  const waiting = queue.take();
  queue.shutDown();
  queue.add('a');
  expect([await waiting, await queue.take()]).toEqual([undefined, undefined]);
});
