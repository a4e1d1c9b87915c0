import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import type { ApiClient } from '../cluster/api-client.ts';
import { deadline } from '../test/fixtures/patience.ts';
import { NodeChannel } from './node-channel.ts';

const channel = () =>
  new NodeChannel({ client: {} as ApiClient, nodeName: 'worker-1', log: pino({ level: 'silent' }) });
const FOREVER = 3_600_000;

describe('waiting for a reason to look again', () => {
  test('ends with one that comes, each time', async () => {
    const waits = channel();
    for (let round = 0; round < 3; round += 1) {
      const { changes } = waits;
      const waiting = waits.changedSince(changes, FOREVER, deadline(10_000));
      waits.lookAgain();
      await waiting;
      expect(waits.changes).toBe(changes + 1);
    }
  });

  test('does not begin where one has come since', async () => {
    const waits = channel();
    const { changes } = waits;
    waits.lookAgain();
    await waits.changedSince(changes, FOREVER, deadline(10_000));
  });

  test('goes on after one that was seen already', async () => {
    const waits = channel();
    waits.lookAgain();
    const waiting = waits.changedSince(waits.changes, FOREVER, deadline(10_000)).then(() => 'over');
    const first = await Promise.race([waiting, new Promise((go) => setImmediate(() => go('waiting')))]);
    expect(first).toBe('waiting');
    waits.lookAgain();
    expect(await waiting).toBe('over');
  });

  test('ends with its time, and with the daemon', async () => {
    const waits = channel();
    await waits.changedSince(waits.changes, 1, deadline(10_000));
    const ending = new AbortController();
    const waiting = waits.changedSince(waits.changes, FOREVER, ending.signal);
    ending.abort();
    await waiting;
    await waits.changedSince(waits.changes, FOREVER, ending.signal);
  });
});

test('nothing is written while there is no object', async () => {
  await channel().publishTrouble('DaemonFailed', 'x', deadline(10_000));
  expect(channel().object).toBeUndefined();
});
