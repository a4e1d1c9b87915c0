import { describe, expect, it } from 'vitest';
import type { DisruptionAction } from '../../api/disruption-action.ts';
import type { UpdateRecord } from '../../api/machine-config-node.ts';
import { earlierThan } from './last-update.ts';

const REBOOT: DisruptionAction[] = [{ type: 'Reboot' }];
const RESTART: DisruptionAction[] = [{ type: 'Restart', service: 'chronyd.service' }];

function record(config: string, actions: DisruptionAction[], more: Partial<UpdateRecord> = {}): UpdateRecord {
  const startedAt = '2026-11-20T00:00:00Z';
  const finishedAt = '2026-11-20T00:05:00Z';
  const boots = { bootIDBefore: 'a', bootIDAfter: 'b' };
  return {
    config,
    actions,
    causes: [],
    source: '',
    startedAt,
    finishedAt,
    ...boots,
    result: 'Succeeded',
    ...more,
  };
}

const times = (config: string, actions: DisruptionAction[]) => ({
  config,
  actions,
  startedAt: '2026-11-20T00:00:00Z',
  finishedAt: '2026-11-20T00:05:00Z',
});

describe('what a record of an update keeps of earlier ones', () => {
  const rebooted = times('rendered-worker-1', REBOOT);
  it.each<[string, DisruptionAction[], UpdateRecord | undefined, object]>([
    ['nothing on a new node', RESTART, undefined, {}],
    ['a reboot before a live update', RESTART, record('rendered-worker-1', REBOOT), { earlier: rebooted }],
    [
      'no reboot that was requested, which says nothing of an update',
      RESTART,
      record('rendered-worker-1', REBOOT, { requested: true }),
      {},
    ],
    [
      'a reboot before several live updates',
      RESTART,
      record('rendered-worker-2', RESTART, { earlier: rebooted }),
      { earlier: rebooted },
    ],
    [
      'the live update between two reboots',
      REBOOT,
      record('rendered-worker-2', RESTART, { earlier: rebooted }),
      { earlier: times('rendered-worker-2', RESTART) },
    ],
    ['none of the same sort', REBOOT, record('rendered-worker-1', REBOOT), {}],
    ['none that failed', RESTART, record('rendered-worker-1', REBOOT, { result: 'Failed' }), {}],
    [
      'not its own sort from behind a failure',
      REBOOT,
      record('rendered-worker-2', RESTART, { result: 'RolledBack', earlier: rebooted }),
      {},
    ],
  ])('%s', (_what, actions, last, kept) => {
    expect(earlierThan(actions, last)).toEqual(kept);
  });
});
