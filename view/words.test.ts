import { expect, test } from 'vitest';
import type { HoldView } from './schemas.ts';
import type { TimeLeft } from './time-left.ts';
import { duration, formatHold, formatTimeLeft } from './words.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const clock = (time: number) => new Date(time).toISOString().slice(11, 16);
const at = (hour: number) => new Date(hour * HOUR).toISOString();

test.each([
  [0, '0 s'],
  [42 * SECOND, '42 s'],
  [3 * MINUTE, '3 min'],
  [3 * MINUTE + 5 * SECOND, '3 min 5 s'],
  [2 * HOUR + 10 * MINUTE, '2 h 10 min'],
  [59_499, '59 s'],
  [59_500, '1 min'],
  [HOUR - 1_000, '59 min 59 s'],
  [HOUR, '1 h'],
  [2 * HOUR, '2 h'],
  [48 * HOUR - MINUTE, '47 h 59 min'],
  [48 * HOUR, '2 days'],
  [72 * HOUR - SECOND, '2 days'],
  [72 * HOUR, '3 days'],
  [-SECOND, '0 s'],
])('%i ms are %s', (ms, words) => {
  expect(duration(ms)).toBe(words);
});

test.each<[HoldView, string]>([
  [{ kind: 'paused' }, 'Paused'],
  [{ kind: 'paused', since: at(12) }, 'Paused since 12:00'],
  [{ kind: 'rollback', by: 'ops', since: at(12), reason: 'slow' }, 'Rolled back by ops since 12:00: slow'],
  [{ kind: 'rollback' }, 'Rolled back'],
  [{ kind: 'window-closed', until: at(22), reason: '0 22 * * *' }, 'Window closed, opens 22:00'],
  [{ kind: 'window-closed' }, 'No window ever opens'],
  [{ kind: 'window-open', until: at(23), reason: '0 22 * * *' }, 'Window open until 23:00'],
  [{ kind: 'window-open' }, 'Window open'],
  [{ kind: 'stopped', since: at(12) }, 'Stopped by failed nodes since 12:00'],
  [{ kind: 'unreadable' }, "Stopped by a setting that can't be read"],
  [{ kind: 'unmanaged' }, 'Not managed'],
  [
    { kind: 'waiting', since: at(12), reason: 'pool canary bakes' },
    'Updates wait since 12:00: pool canary bakes',
  ],
  [{ kind: 'next-reboot' }, 'Updates apply at the next reboot'],
  [
    { kind: 'cluster-api', reason: 'MachineDeployment default/workers' },
    'Cluster API decides when nodes are updated: MachineDeployment default/workers',
  ],
  [{ kind: 'tried', since: at(12), reason: 'a is undone' }, 'A change is tried since 12:00: a is undone'],
  [
    { kind: 'maintenance', by: 'ops', since: at(1), until: at(22), reason: 'new disk' },
    'In maintenance by ops until 22:00: new disk',
  ],
  [{ kind: 'powered-off', by: 'ops', since: at(12) }, 'Powered off by ops since 12:00'],
  [{ kind: 'held', reason: 'cordoned, and not by Shale' }, 'Left alone: cordoned, and not by Shale'],
  [{ kind: 'deleting', reason: 'the node is being deleted' }, 'Going away: the node is being deleted'],
  [{ kind: 'lease', by: 'nhc', until: at(13) }, 'Lease held by nhc until 13:00'],
])('%j is a badge', (hold, text) => {
  expect(formatHold(hold, clock)).toBe(text);
});

test.each<[TimeLeft, string]>([
  [{ ms: 20 * SECOND, updates: 1, of: 'this' }, 'about 1 min left, at the pace of the last node'],
  [{ ms: 12.4 * MINUTE, updates: 50, of: 'this' }, 'about 12 min left, at the pace of the last 50 nodes'],
  [{ ms: 43 * MINUTE, updates: 3, of: 'last' }, 'about 45 min left, at the pace of the rollout before'],
  [{ ms: 83 * MINUTE, updates: 3, of: 'last' }, 'about 1 h 20 min left, at the pace of the rollout before'],
  [{ ms: 0, updates: 2, of: 'this' }, 'taking longer than the last 2 nodes'],
  [{ ms: 0, updates: 2, of: 'last' }, 'taking longer than the rollout before'],
])('%j is the time left', (left, text) => {
  const { text: shown, basis } = formatTimeLeft(left);
  expect(`${shown}${basis}`).toBe(text);
});
