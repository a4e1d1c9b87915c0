import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseBootcStatus } from '../bootc/status.ts';
import { arrangeHost, composefsObstacle } from './composefs-host.ts';

/** @returns what bootc 1.16.9 printed, step by step of a machine's life. */
function recorded(bootloader: string): ReadonlyMap<string, string> {
  const file = `../../../test/os-tools/recorded/bootc-1.16.9-composefs-${bootloader}.json`;
  const text = readFileSync(path.join(import.meta.dirname, file), 'utf8');
  const steps: readonly { readonly step: string; readonly status?: unknown }[] = JSON.parse(text);
  return new Map(
    steps.flatMap(({ step, status }) => (status === undefined ? [] : [[step, JSON.stringify(status)]])),
  );
}

const deployment = (verity: string, digit: string) => ({
  verity: verity.repeat(128),
  image: `quay.io/example/os@sha256:${digit.repeat(64)}`,
});
const [a, b, c, d] = [deployment('a', '1'), deployment('b', '2'), deployment('c', '3'), deployment('d', '4')];
const staged = (each: typeof a, isDownloadOnly = false) => ({ ...each, isDownloadOnly });
/** With the booted one's kernel, initramfs and arguments. */
const soft = (each: typeof a) => ({ ...each, canSoftReboot: true });

describe('arrangeHost', () => {
  const steps = recorded('systemd-boot');

  it.each([
    ['as installed', { booted: a }],
    ['one image staged', { booted: a, staged: staged(soft(b)) }],
    ['another image staged', { booted: a, staged: staged(c) }],
    ['held back, by the note of what is staged', { booted: a, staged: staged(soft(b), true) }],
    // Still noted as staged, and no longer held back by anything: the bootloader's first entry.
    ['finalized', { booted: a, written: soft(b) }],
    ['booted from what was staged', { booted: b, previous: soft(a) }],
    ['rollback queued', { booted: b, written: soft(a) }],
    ['rollback queued no more', { booted: b, previous: soft(a) }],
    ['staged, with one to go back to', { booted: b, staged: staged(c), previous: soft(a) }],
    ['what was staged is gone', { booted: b, written: soft(a) }],
    ['after the soft reboot was refused', { booted: b, staged: staged(d), previous: soft(a) }],
    ['booted from the rollback', { booted: a, previous: soft(b) }],
    ['nothing to go back to', { booted: a }],
    ['it is staged again', { booted: a, staged: staged(soft(b)) }],
  ])('%s', (step, expected) => {
    expect(arrangeHost(parseBootcStatus(steps.get(step) ?? ''))).toEqual(expected);
  });

  it('knows what is staged beside a rollback that is queued', () => {
    const host = parseBootcStatus(steps.get('staged, with one to go back to') ?? '');
    expect(arrangeHost({ ...host, status: { ...host.status, rollbackQueued: true } })).toEqual({
      booted: b,
      staged: staged(c),
      written: soft(a),
    });
  });

  it('has no image for one that no registry has', () => {
    const host = JSON.parse(steps.get('as installed') ?? '');
    host.status.booted.image.image.transport = 'containers-storage';
    expect(arrangeHost(parseBootcStatus(JSON.stringify(host)))).toEqual({ booted: { verity: a.verity } });
  });

  it('is for hosts of the composefs backend', () => {
    const text = readFileSync(
      path.join(import.meta.dirname, '../bootc/transcripts/1.16-staged.json'),
      'utf8',
    );
    expect(() => arrangeHost(parseBootcStatus(text))).toThrow('composefs.verity');
  });
});

describe('composefsObstacle', () => {
  it.each([...recorded('systemd-boot')])('systemd-boot, %s', (_step, text) => {
    expect(composefsObstacle(parseBootcStatus(text).status.booted?.composefs ?? {})).toBeUndefined();
  });

  it.each([...recorded('grub')])('GRUB, %s', (_step, text) => {
    expect(composefsObstacle(parseBootcStatus(text).status.booted?.composefs ?? {})).toMatch(
      /^bootc keeps its deployments in composefs and not in ostree, booted by BLS entries with GRUB: .*rollback/,
    );
  });

  it.each([
    [{}, 'booted by an unknown boot type: expected BLS entries with systemd-boot'],
    [{ bootType: 'Bls', bootloader: null }, 'booted by BLS entries: expected systemd-boot'],
    [
      { bootType: 'Addon', bootloader: 'zipl' },
      'booted by boot type Addon with bootloader zipl: expected BLS',
    ],
    [{ bootType: 'Bls', bootloader: 'grub-cc' }, 'with GRUB for confidential clusters: GRUB sorts'],
    [
      { bootType: 'Uki', bootloader: 'systemd' },
      'a unified kernel image, which has the kernel arguments with',
    ],
  ])('%j', (boot, why) => {
    expect(composefsObstacle(boot)).toContain(why);
  });
});
