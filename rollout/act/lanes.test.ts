import { expect, it } from 'vitest';
import { Lanes, type Urgency } from './lanes.ts';

interface Work {
  readonly name: string;
  readonly end: () => void;
}

/** Work that goes on until it is ended, in the order in which it began. */
function watched(lanes: Lanes) {
  const begun: Work[] = [];
  const add = (name: string, urgency: Urgency) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    return lanes.run(urgency, () => {
      begun.push({ name, end: resolve });
      return promise;
    });
  };
  return { add, begun, names: () => begun.map(({ name }) => name) };
}

it('runs as much at the same time as there are lanes, and then what is most urgent', async () => {
  const { add, begun, names } = watched(new Lanes({ width: 2, reserved: 0 }));
  const all = [
    add('take 1', 'takes'),
    add('assign', 'assigns'),
    add('take 2', 'takes'),
    add('end 1', 'ends'),
    add('end 2', 'ends'),
  ];
  expect(names()).toEqual(['take 1', 'assign']);
  for (let at = 0; at < all.length; at += 1) {
    begun[at]?.end();
    await expect.poll(() => begun.length).toBe(Math.min(all.length, at + 3));
  }
  await Promise.all(all);
  expect(names()).toEqual(['take 1', 'assign', 'end 1', 'end 2', 'take 2']);
});

it('what starts leaves lanes to what ends, and has its own back', async () => {
  const { add, begun, names } = watched(new Lanes({ width: 3, reserved: 1 }));
  const all = [add('take 1', 'takes'), add('take 2', 'takes'), add('take 3', 'takes'), add('end', 'ends')];
  expect(names()).toEqual(['take 1', 'take 2', 'end']);
  begun[2]?.end();
  await all[3];
  expect(names()).toHaveLength(3);
  begun[0]?.end();
  await all[0];
  expect(names()).toEqual(['take 1', 'take 2', 'end', 'take 3']);
  for (const { end } of begun) end();
  await Promise.all(all);
});

it('has its lane back from work that fails', async () => {
  const lanes = new Lanes({ width: 1, reserved: 0 });
  await expect(lanes.run('takes', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  await expect(lanes.run('assigns', async () => 'next')).resolves.toBe('next');
});
