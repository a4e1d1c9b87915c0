import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { ImageProof } from '../pools/image-proof.ts';
import { ImageProofs } from './image-proofs.ts';

const signal = new AbortController().signal;
const refused: ImageProof = { kind: 'refused', why: 'it has /etc/evil' };

/** A proof that ends when a test says so. */
function slowProof() {
  const end = Promise.withResolvers<ImageProof>();
  let begun = 0;
  return {
    prove: () => {
      begun += 1;
      return end.promise;
    },
    end: async (proof: ImageProof) => {
      end.resolve(proof);
      await turn();
    },
    begun: () => begun,
  };
}

test('a proof that is quick is an outcome at once, and nobody is told', async () => {
  const told: string[] = [];
  const proofs = new ImageProofs({ onOutcome: (pool) => told.push(pool), patienceMs: 60_000 });
  expect(await proofs.outcomeOf('worker', 'a', async () => refused, signal)).toEqual(refused);
  await turn();
  expect(told).toEqual([]);
});

test('a pass doesn’t wait for a slow one: its outcome causes the next pass, which takes it', async () => {
  const told: string[] = [];
  const proofs = new ImageProofs({ onOutcome: (pool) => told.push(pool), patienceMs: 0 });
  const slow = slowProof();
  expect(await proofs.outcomeOf('worker', 'a', slow.prove, signal)).toBeUndefined();
  expect(await proofs.outcomeOf('worker', 'a', slow.prove, signal)).toBeUndefined();
  expect(slow.begun()).toBe(1);
  await slow.end(refused);
  expect(told).toEqual(['worker']);
  expect(await proofs.outcomeOf('worker', 'a', slow.prove, signal)).toEqual(refused);
  expect(slow.begun()).toBe(1);
});

test('what a registry makes impossible is an outcome with the reason', async () => {
  const proofs = new ImageProofs({ onOutcome: () => undefined, patienceMs: 60_000 });
  const fail = () => Promise.reject(new Error('connection refused'));
  expect(await proofs.outcomeOf('worker', 'a', fail, signal)).toEqual({
    kind: 'unreadable',
    why: 'connection refused',
  });
});

test('an outcome that no pass takes any more is forgotten', async () => {
  const proofs = new ImageProofs({ onOutcome: () => undefined, patienceMs: 0 });
  const slow = slowProof();
  await proofs.outcomeOf('worker', 'a', slow.prove, signal);
  await slow.end(refused);
  proofs.forget((key) => key !== 'a');
  await proofs.outcomeOf('worker', 'a', slow.prove, signal);
  expect(slow.begun()).toBe(2);
});

test('a process that stops waits for none', async () => {
  const stop = new AbortController();
  const proofs = new ImageProofs({ onOutcome: () => undefined, patienceMs: 0 });
  const slow = slowProof();
  await proofs.outcomeOf('worker', 'a', slow.prove, stop.signal);
  stop.abort(new Error('stopping'));
  await expect(proofs.outcomeOf('worker', 'a', slow.prove, stop.signal)).rejects.toThrow('stopping');
});
