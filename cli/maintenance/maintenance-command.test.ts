import { expect, test } from 'vitest';
import { annotations } from '../../api/names.ts';
import { node, observed } from '../../test/fixtures/observed-cluster.ts';
import { formatMaintenance, maintenanceList } from './maintenance-command.ts';

const NOW = Date.parse('2026-11-20T10:00:00Z');
const flagged = (name: string, until: string, cordoned = true) =>
  node(
    name,
    { [annotations.plannedMaintenance]: JSON.stringify({ reason: 'new disk', by: 'ann', until }) },
    cordoned,
  );

test.each([
  ['is skipped', '2026-11-20T12:00:00Z', 'flagged for maintenance by ann: new disk'],
  ['has expired, while it is still cordoned', '2026-11-20T09:00:00Z', 'cordoned, and not by Shale'],
])('a flagged node whose maintenance %s', (_, until, obstacle) => {
  const [entry, ...more] = maintenanceList(observed({ nodes: [flagged('a', until), node('b')] }), NOW);
  expect(more).toEqual([]);
  expect(entry).toMatchObject({ node: 'a', by: 'ann', reason: 'new disk', until, cordoned: true });
  expect(entry?.obstacle).toBe(obstacle);
});

test('a machine that was switched off is listed with who did that and why', () => {
  const off = node('a', { [annotations.poweredOff]: '{"by":"ann","reason":"fan"}' });
  expect(maintenanceList(observed({ nodes: [off] }), NOW)).toEqual([
    expect.objectContaining({ by: 'ann', reason: 'fan', obstacle: 'switched off on request by ann: fan' }),
  ]);
});

test('the table shows why a node is skipped', () => {
  const over = '2026-11-20T09:00:00Z';
  const nodes = [flagged('a', over), flagged('b', over, false)];
  const entries = maintenanceList(observed({ nodes }), NOW);
  expect(formatMaintenance(entries).split('\n')).toEqual([
    'NODE  BY   REASON    UNTIL                 CORDONED  SKIPPED',
    'a     ann  new disk  2026-11-20T09:00:00Z  yes       cordoned, and not by Shale',
    'b     ann  new disk  2026-11-20T09:00:00Z  no        no: the maintenance has expired',
  ]);
  expect(formatMaintenance([])).toBe('no node is in maintenance');
});
