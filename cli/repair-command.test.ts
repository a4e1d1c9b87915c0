import { expect, test } from 'vitest';
import type { ReportedDrift } from './observe/repair-arrival.ts';
import { formatRepair } from './repair-command.ts';

const what = '/etc/app.conf: is not there, but should be a file';

test.each<[ReportedDrift, 'planned' | 'requested', string]>([
  [{ kind: 'none' }, 'requested', 'node a: nothing differs from its config'],
  [{ kind: 'none' }, 'planned', 'node a: nothing differs from its config'],
  [
    { kind: 'elsewhere', message: 'Kernel arguments differ from x' },
    'requested',
    'node a: nothing differs that a repair overwrites: Kernel arguments differ from x',
  ],
  [
    { kind: 'differs', what },
    'requested',
    `node a: requested a repair, which overwrites what was changed by hand: ${what}\n  services that read these files are not restarted`,
  ],
  [
    { kind: 'differs', what },
    'planned',
    `node a: would overwrite what was changed by hand: ${what}\n  services that read these files are not restarted`,
  ],
])('%j is described before it is overwritten (%s)', (drift, extent, text) => {
  expect(formatRepair('a', drift, extent)).toBe(text);
});

test('what is not known is not called equal', () => {
  for (const extent of ['requested', 'planned'] as const)
    expect(formatRepair('a', { kind: 'unknown' }, extent)).toContain('does not run its target');
});
