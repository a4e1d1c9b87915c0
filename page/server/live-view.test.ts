import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { ApiError } from '../../cluster/api-client.ts';
import { aFleet } from '../../test/page/fleet.ts';
import { memoryCaches } from '../../test/page/memory-caches.ts';
import type { PageView } from '../model/view.ts';
import { LiveView } from './live-view.ts';

const NOW = Date.parse('2026-11-01T12:00:00Z');

/** @returns the remarks of a view whose cluster answers so, once they are as expected. */
async function remarksWhere(
  inMaintenance: () => Promise<ReadonlySet<string>>,
  holds: (remarks: PageView['remarks']) => boolean,
): Promise<PageView['remarks']> {
  const stop = new AbortController();
  const live = new LiveView({
    caches: memoryCaches(aFleet({ worker: 3 }, NOW)),
    inMaintenance,
    log: pino({ level: 'silent' }),
    now: () => NOW,
  });
  onTestFinished(() => stop.abort());
  const remarks = new Promise<PageView['remarks']>((resolve) => {
    live.follow(() => {
      if (live.current !== undefined && holds(live.current.remarks)) resolve(live.current.remarks);
    });
  });
  void live.run(stop.signal);
  return remarks;
}

test('a cluster that does not answer is silent since its last answer', async () => {
  const remarks = await remarksWhere(
    () => Promise.reject(new Error('connect ECONNREFUSED')),
    ({ silence }) => silence !== undefined,
  );
  expect(remarks['silence']).toEqual({
    text: 'The cluster does not respond, so this page may be out of date: connect ECONNREFUSED',
    silentSince: NOW,
  });
});

test('a refusal is an answer', async () => {
  const remarks = await remarksWhere(
    () => Promise.reject(new ApiError(403, 'list nodemaintenances', { message: 'forbidden' })),
    (given) => Object.keys(given).length > 0,
  );
  expect(Object.values(remarks)).toEqual([
    { text: "NodeMaintenances can't be read: list nodemaintenances: forbidden" },
  ]);
});
