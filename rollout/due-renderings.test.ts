import { expect, test } from 'vitest';
import { DueRenderings } from './due-renderings.ts';

test('a rendering is due until it is over, and stays so when it fails', async () => {
  const renderings = new DueRenderings();
  expect(renderings.has('worker')).toBe(false);
  renderings.mark('worker');
  expect([renderings.has('worker'), renderings.has('infra')]).toEqual([true, false]);
  const failing = () => Promise.reject(new Error('no answer'));
  await expect(renderings.during('worker', failing)).rejects.toThrow('no answer');
  expect(renderings.has('worker')).toBe(true);
  await renderings.during('worker', async () => expect(renderings.has('worker')).toBe(true));
  expect(renderings.has('worker')).toBe(false);
});

test('what changes during a rendering makes another one due', async () => {
  const renderings = new DueRenderings();
  await renderings.during('worker', async () => renderings.mark('worker'));
  expect(renderings.has('worker')).toBe(true);
});

test('a pass that nothing made due is nothing that a pool waits for: nothing would tell that it is over', async () => {
  const renderings = new DueRenderings();
  await renderings.during('worker', async () => expect(renderings.has('worker')).toBe(false));
  await expect(renderings.during('worker', () => Promise.reject(new Error('x')))).rejects.toThrow('x');
  expect(renderings.has('worker')).toBe(false);
});
