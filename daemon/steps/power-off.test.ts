import { expect, test } from 'vitest';
import { stepUnderTest } from '../../test/fixtures/step-context.ts';
import { powerOff } from './power-off.ts';

const HOLDER = 'shale-maintenance/ann';
const request = { bootID: 'boot-1', by: 'ann', reason: 'new memory', at: '', leaseHolder: HOLDER };

async function node(leaseHolder: string | undefined) {
  const down = new AbortController();
  const done: string[] = [];
  const test = await stepUnderTest({
    leaseHolder,
    context: { signal: down.signal },
    host: {
      powerOff: async (reason) => {
        done.push(reason);
        down.abort();
      },
    },
  });
  return { ...test, done };
}

test('a machine is powered off while the maintenance has its lease', async () => {
  const { context, done, reasons, events } = await node(HOLDER);
  await expect(powerOff(context, request)).rejects.toThrow('aborted');
  expect(done).toEqual(['powering off: ann requested it: new memory']);
  expect(reasons).toEqual(['PoweringOff']);
  expect(events).toEqual(['Powering off: ann requested it: new memory']);
});

test.each([
  ['nobody', undefined],
  ['somebody else', 'shale-operator'],
])('and not while %s has it', async (_, leaseHolder) => {
  const { context, done, events } = await node(leaseHolder);
  expect(await powerOff(context, request)).toEqual({ kind: 'wait', ms: 5_000 });
  expect([done, events]).toEqual([[], []]);
});
