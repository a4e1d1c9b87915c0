import { expect, test } from 'vitest';
import { createChanges, type Look, WaitTimeout, waitUntil } from './wait-until.ts';

const noEnd = new AbortController().signal;
const common = { what: 'three nodes', deadlineMs: 5_000, signal: noEnd };

test('returns at once what is already met', async () => {
  const wait = { ...common, changes: createChanges(), look: () => ({ met: 3 }) };
  expect(await waitUntil(wait)).toBe(3);
});

test('looks again after each change, and reports what is new', async () => {
  const changes = createChanges();
  let nodes = 0;
  const progress: string[] = [];
  const waiting = waitUntil({
    ...common,
    changes,
    look: (): Look<number> => (nodes === 3 ? { met: nodes } : { seen: `${nodes} nodes` }),
    onProgress: (seen) => progress.push(seen),
  });
  for (nodes = 0; nodes < 2; nodes += 1) changes.notify();
  changes.notify();
  nodes = 3;
  changes.notify();

  expect(await waiting).toBe(3);
  expect(progress).toEqual(['0 nodes', '1 nodes', '2 nodes']);
});

test('names what it waited for and what it saw last when the time is up', async () => {
  const wait = { ...common, deadlineMs: 10, changes: createChanges(), look: () => ({ seen: 'two nodes' }) };
  await expect(waitUntil(wait)).rejects.toThrow(WaitTimeout);
  await expect(waitUntil(wait)).rejects.toThrow(
    'timed out after 0.01 s waiting until three nodes; last state: two nodes',
  );
});

test('ends with the signal, and with an error of the look', async () => {
  const controller = new AbortController();
  const changes = createChanges();
  const waiting = waitUntil({ ...common, changes, look: () => ({ seen: '' }), signal: controller.signal });
  controller.abort(new Error('interrupted'));
  await expect(waiting).rejects.toThrow('interrupted');

  const look = (): Look<never> => {
    throw new Error('node worker-1 is degraded');
  };
  await expect(waitUntil({ ...common, changes, look })).rejects.toThrow('worker-1 is degraded');
});
