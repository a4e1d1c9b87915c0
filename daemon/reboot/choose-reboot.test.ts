import { describe, expect, test } from 'vitest';
import type { DisruptionCause } from '../../api/disruption-action.ts';
import { type RebootQuestion, rebootFully, whyRebootFully } from './choose-reboot.ts';
import { asRebooted } from './reboot-words.ts';
import { softRebootLeftMs } from './request.ts';

const cause = (kind: DisruptionCause['kind'], subject: string): DisruptionCause => ({
  kind,
  subject,
  change: 'changed',
  rule: 'no policy: Reboot',
  actions: [{ type: 'Reboot' }],
});
const able: RebootQuestion = {
  isStuck: false,
  causes: [cause('file', '/etc/crio/crio.conf'), cause('field', 'baseImage')],
  booted: { kernelArguments: ['rw', 'quiet'] },
  next: { kernelArguments: ['rw', 'quiet'], canSoftReboot: true },
  running: undefined,
};

describe('whyRebootFully', () => {
  test.each<[string, Partial<RebootQuestion>, string | undefined]>([
    ['all of it', {}, undefined],
    ['nothing known of what changes', { causes: [] }, undefined],
    ['a file beside the kernel’s', { causes: [cause('file', '/etc/sysctl.d.old/a.conf')] }, undefined],
    ['a live update that hangs', { isStuck: true }, 'started and could not be finished'],
    ['the booted deployment', { next: undefined }, 'booted deployment stays'],
    ['a tool that does not say so', { next: { kernelArguments: ['rw', 'quiet'] } }, 'does not report'],
    [
      'another kernel argument',
      { next: { kernelArguments: ['rw', 'nosmt'], canSoftReboot: true } },
      'kernel arguments',
    ],
    [
      'one kernel argument more',
      { next: { kernelArguments: ['rw', 'quiet', 'nosmt'], canSoftReboot: true } },
      'kernel arguments',
    ],
    ['a kernel that has all arguments', { running: ['BOOT_IMAGE=/vmlinuz', 'rw', 'quiet'] }, undefined],
    [
      'a kernel that was started before somebody restored an argument',
      { running: ['rw'] },
      'the kernel was started without quiet',
    ],
    [
      'other kernel arguments in the config',
      { causes: [cause('field', 'kernelArguments')] },
      'kernelArguments',
    ],
    ['a module’s options', { causes: [cause('file', '/etc/modprobe.d/nvidia.conf')] }, 'nvidia.conf'],
    ['a sysctl', { causes: [cause('file', '/etc/sysctl.conf')] }, '/etc/sysctl.conf'],
  ])('%s', (_name, more, why) => {
    const found = whyRebootFully({ ...able, ...more });
    if (why === undefined) expect(found).toBeUndefined();
    else expect(found).toContain(why);
  });
});

const plan = { config: 'rendered-2', staged: true, actions: [], causes: [], source: 'the label' };

test('a plan says why it reboots fully', () => {
  const soft = { ...plan, softReboot: true };
  expect(rebootFully(soft, 'late')).toEqual({ ...plan, source: 'the label; no soft reboot: late' });
});

test('what was booted tells how, not what was planned', () => {
  expect(asRebooted({ ...plan, softReboot: true }, 'k', 'other')).toEqual(plan);
  expect(asRebooted(plan, 'k', 'k+1')).toEqual({ ...plan, softReboot: true });
});

test.each([
  ['just asked for', '2026-01-01T00:00:00Z', 60_000],
  ['half over', '2025-12-31T23:59:30Z', 30_000],
  ['over', '2025-12-31T23:00:00Z', 0],
  ['by a clock that was set back', '2026-01-01T00:00:01Z', 0],
  ['never asked for', undefined, 0],
])('%s', (_name, since, expected) => {
  expect(softRebootLeftMs(since, Date.parse('2026-01-01T00:00:00Z'), 60_000)).toBe(expected);
});
