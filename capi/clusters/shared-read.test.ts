import { expect, test } from 'vitest';
import { SharedRead } from './shared-read.ts';

const never = new AbortController().signal;

function aRead() {
  const begun: PromiseWithResolvers<string>[] = [];
  let now = 0;
  const read = () => {
    const each = Promise.withResolvers<string>();
    begun.push(each);
    return each.promise;
  };
  return {
    shared: new SharedRead(read, () => now),
    begun,
    at: (ms: number) => {
      now = ms;
    },
  };
}

test('calls within 2 s share one read, whether or not it has ended', async () => {
  const { shared, begun, at } = aRead();
  const first = shared.get(never);
  begun[0]?.resolve('a');
  expect(await first).toBe('a');
  at(1_999);
  expect(await shared.get(never)).toBe('a');
  at(2_000);
  const next = shared.get(never);
  begun[1]?.resolve('b');
  expect(await next).toBe('b');
  expect(begun).toHaveLength(2);
});

test('after a write nobody gets what was read before it', async () => {
  const { shared, begun } = aRead();
  const before = shared.get(never);
  shared.forget();
  const after = shared.get(never);
  begun[0]?.resolve('old');
  begun[1]?.resolve('new');
  expect([await before, await after]).toEqual(['old', 'new']);
  expect(await shared.get(never)).toBe('new');
  expect(begun).toHaveLength(2);
});

test('a read that fails is not kept', async () => {
  const { shared, begun } = aRead();
  const both = [shared.get(never), shared.get(never)];
  begun[0]?.reject(new Error('away'));
  for (const each of both) await expect(each).rejects.toThrow('away');
  const next = shared.get(never);
  begun[1]?.resolve('b');
  expect(await next).toBe('b');
});

test('a caller that goes away ends its own call and no other', async () => {
  const { shared, begun } = aRead();
  const caller = new AbortController();
  const gone = shared.get(caller.signal);
  const stays = shared.get(never);
  caller.abort(new Error('gone'));
  await expect(gone).rejects.toThrow('gone');
  begun[0]?.resolve('a');
  expect(await stays).toBe('a');
  await expect(shared.get(caller.signal)).rejects.toThrow('gone');
});
