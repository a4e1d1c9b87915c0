import { expect, test } from 'vitest';
import { annotations } from '../../api/names.ts';
import { endedRollbacks } from './ended-rollbacks.ts';
import type { SwitchData } from './switch-data.ts';

const ON: SwitchData = { enabled: 'true', imageRepository: 'r.example.com/os/{pool}' };
const OFF: SwitchData = { ...ON, enabled: 'false' };
const ONLY_INFRA = { ...ON, pools: 'infra' };
const HOLD = JSON.stringify({ config: 'rendered-worker-1', by: 'ann', reason: 'fan', at: '' });
const pools = (hold: string) => [
  { metadata: { name: 'infra' } },
  { metadata: { name: 'worker', annotations: { [annotations.rollback]: hold } } },
];
const released = (from: SwitchData, to: SwitchData, admins = false, hold = HOLD) =>
  endedRollbacks(pools(hold), { from, to, notBySwitch: () => admins });

test.each<[string, SwitchData, SwitchData]>([
  ['layers it', OFF, ON],
  ['returns it to the stock image', ON, OFF],
  ['returns it alone to the stock image', ON, ONLY_INFRA],
  ['builds its images on another base', ON, { ...ON, baseImage: 'r.example.com/base:2' }],
  ['pushes its images to another repository', ON, { ...ON, imageRepository: 'r.example.com/new/{pool}' }],
])('a pool that a rollback holds is not released by a change that %s', (_what, from, to) => {
  expect(released(from, to)).toEqual([
    'pool worker is held by a rollback at rendered-worker-1 (rolled back by ann: fan), and this change would end it: first clear it with shale rollback worker --clear',
  ]);
});

test.each<[string, SwitchData, SwitchData]>([
  ['layers other pools', OFF, ONLY_INFRA],
  ['has other Secrets', ON, { ...ON, pushSecret: 'push' }],
  ['changes nothing', ON, ON],
  ['concerns other pools alone', ONLY_INFRA, { ...ONLY_INFRA, baseImage: 'r.example.com/base:2' }],
])('a change that %s does not touch it', (_what, from, to) => {
  expect(released(from, to)).toEqual([]);
});

test("a pool with an admin's own MachineOSConfig is not the switch's", () => {
  expect(released(ON, OFF, true)).toEqual([]);
});

test('a hold that says little is named as far as it does', () => {
  const image = `r.example.com/os@sha256:${'a'.repeat(64)}`;
  expect(released(ON, OFF, false, JSON.stringify({ config: 'x', image }))).toEqual([
    expect.stringContaining(`by a rollback at ${image}, and`),
  ]);
  expect(released(ON, OFF, false, 'yes')).toEqual([expect.stringContaining('held by a rollback, and')]);
});
