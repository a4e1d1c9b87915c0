import { expect, test } from 'vitest';
import { formatRepair } from './repair-command.ts';

const what = '/etc/app.conf: is not there, but should be a file';

test.each([
  [{ kind: 'none' } as const, false, 'node a: nothing differs from its config'],
  [{ kind: 'none' } as const, true, 'node a: nothing differs from its config'],
  [
    { kind: 'elsewhere', message: 'Kernel arguments differ from x' } as const,
    false,
    'node a: nothing differs that a repair overwrites: Kernel arguments differ from x',
  ],
  [
    { kind: 'differs', what } as const,
    false,
    `node a: requested a repair, which overwrites what was changed by hand: ${what}\n  services that read these files are not restarted`,
  ],
  [
    { kind: 'differs', what } as const,
    true,
    `node a: would overwrite what was changed by hand: ${what}\n  services that read these files are not restarted`,
  ],
])('%j is described before it is overwritten (dry run: %s)', (drift, isDryRun, text) => {
  expect(formatRepair('a', drift, isDryRun)).toBe(text);
});

test('what is not known is not called equal', () => {
  for (const isDryRun of [false, true])
    expect(formatRepair('a', { kind: 'unknown' }, isDryRun)).toContain('does not run its target');
});
