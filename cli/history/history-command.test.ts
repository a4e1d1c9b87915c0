import { expect, test } from 'vitest';
import { changeOf } from '../../api/change-id.ts';
import { formatHistory } from './history-command.ts';
import type { HistoryEntry } from './pool-history.ts';

const entry: HistoryEntry = {
  at: '2026-11-20T10:00:00Z',
  config: 'rendered-worker-1',
  change: changeOf('rendered-worker-1'),
  way: 'Append',
  result: 'Succeeded',
  wanted: false,
  nodes: 0,
};
const HEAD = '2026-11-20T10:00:00Z  rendered-worker-1';

test.each([
  ['nothing uses it', {}, `${HEAD}  (Append)`],
  ['one node runs it', { nodes: 1 }, `${HEAD}  (Append)  <- run by 1 node`],
  ['it is the target', { wanted: true }, `${HEAD}  (Append)  <- target`],
  [
    'it is another label',
    { way: 'Relabel', forRollback: true as const },
    `${HEAD}  (Relabel for a rollback)`,
  ],
  ['both', { wanted: true, nodes: 3 }, `${HEAD}  (Append)  <- target, run by 3 nodes`],
  ['it is being built', { result: 'Building' as const }, `${HEAD}  (Append, Building)`],
  [
    'its build failed',
    { result: 'Failed' as const, message: 'disk full' },
    `${HEAD}  (Append, Failed: disk full)`,
  ],
])('%s', (_, more, line) => {
  expect(formatHistory([{ ...entry, ...more }]).split('\n')[0]).toBe(line);
});

test('the image and the changes follow, with their MachineConfigs', () => {
  const changes = [
    { subject: '/etc/a', change: 'added' as const, machineConfigs: ['10-a', '20-b'] },
    { subject: '/etc/b', change: 'removed' as const, machineConfigs: [] },
  ];
  expect(
    formatHistory([{ ...entry, image: 'r.io/os@sha256:1', changes }])
      .split('\n')
      .slice(2),
  ).toEqual(['  r.io/os@sha256:1', '  added /etc/a (10-a, 20-b)', '  removed /etc/b']);
});

test.each([
  [
    { summary: '2 packages (2 upgraded), kernel 1 -> 2' },
    '\n  contents: 2 packages (2 upgraded), kernel 1 -> 2',
  ],
  [
    { summary: 'not compared with the image before', unreadable: ['the image before is gone'] },
    '\n  contents: not compared with the image before; the image before is gone',
  ],
])('what is different inside an image is one line: %j', (contents, line) => {
  expect(formatHistory([{ ...entry, contents }])).toContain(line);
});

test('an image with the same inside has no such line', () => {
  expect(formatHistory([{ ...entry, contents: { previousImage: 'r.io/os@sha256:1' } }])).not.toContain(
    'contents',
  );
});

test('a pool without a rendered config', () => {
  const revision = { number: 3, at: '2026-11-20T11:00:00Z' };
  expect(formatHistory([{ ...entry, revision }])).toContain(
    '\n  revision 3, first assigned 2026-11-20T11:00:00Z',
  );
  expect(formatHistory([])).toBe('no config has been rendered for the pool yet');
});
