import { expect, test } from 'vitest';
import type { ApiClient } from '../../cluster/api-client.ts';
import { answeringClient } from '../../test/fixtures/answering-client.ts';
import { exitCodes } from '../command-line/exit-codes.ts';
import { waitForArrival } from './wait-for-arrival.ts';

/** Aborts while the first list is read, as Ctrl-C does. */
function interruptedClient(stop: AbortController): ApiClient {
  const list = async () => {
    stop.abort(new Error('stopped by SIGINT'));
    throw stop.signal.reason;
  };
  return answeringClient({ list });
}

test.each([
  [
    undefined,
    'interrupted: the rollout continues in the cluster; to wait for it again, run shale status --wait',
  ],
  ['the daemon goes on', 'interrupted: the daemon goes on'],
])('Ctrl-C ends the wait and reports what goes on in the cluster (%s)', async (afterInterrupt, message) => {
  const stop = new AbortController();
  const waiting = waitForArrival({
    client: interruptedClient(stop),
    places: { namespace: 'shale-system', leaseNamespace: 'leases' },
    look: () => ({ kind: 'underway', progress: 'worker: 0/1 nodes' }),
    timeout: 60_000,
    afterInterrupt,
    output: { write: () => true },
    signal: stop.signal,
  });
  await expect(waiting).rejects.toMatchObject({ message, exitCode: exitCodes.interrupted });
});
