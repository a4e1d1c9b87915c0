import { describe, expect, test } from 'vitest';
import {
  at,
  begun,
  grant,
  image,
  layered,
  plan,
  restart,
  sick,
  stuck,
  verifying,
  wanted,
} from '../../test/fixtures/daemon-observation.ts';
import { decide } from '../decide.ts';
import type { DaemonObservation } from '../steps/step.ts';
import type { ArmedBoot } from './armed-boot.ts';

const reboot = [{ type: 'Reboot' }] as const;
const nextBoot = (config: string, digit: string) => ({ nextBoot: { config, image: image(digit) } });
const permitted = nextBoot('rendered-2', '2');
const armedBoot: ArmedBoot = {
  version: 1,
  plan: plan('rendered-2', '2', [...reboot]),
  next: begun.next,
  softRebootAllowed: false,
  bootID: 'boot-1',
  deployment: 'new.0',
  etc: 'x',
};
const armed = (more: Partial<DaemonObservation> = {}): DaemonObservation => ({
  ...wanted([...reboot], permitted),
  armed: armedBoot,
  nextDeployment: 'new.0',
  ...more,
});

describe('where reboots are left to others', () => {
  test.each<[string, DaemonObservation, string]>([
    ['a permission for the next boot is no grant to reboot', wanted([...reboot], permitted), 'arm'],
    [
      'a permission for the next boot with another image',
      wanted([...reboot], nextBoot('rendered-2', '9')),
      'awaitGrant',
    ],
    [
      'a permission for the next boot with another config',
      wanted([...reboot], nextBoot('rendered-9', '2')),
      'awaitGrant',
    ],
    ['a permission for the next boot, of what needs no reboot', wanted([restart], permitted), 'awaitGrant'],
    [
      'a permission for the next boot before it is staged',
      at({ spec: layered('rendered-2', '2', permitted) }),
      'prepare',
    ],
    [
      'a permission for the next boot and a grant',
      wanted([...reboot], { ...permitted, ...grant('Disrupt', 'rendered-2', '2') }),
      'reboot',
    ],
    [
      'a permission for the next boot between two states',
      stuck(layered('rendered-2', '2', permitted)),
      'awaitGrant',
    ],
    [
      'a permission for the next boot with a target that failed',
      at({ spec: layered('rendered-2', '2', permitted), failed: sick }),
      'degraded',
    ],
    ['armed', armed(), 'stayArmed'],
    ['armed, and the permission is withdrawn', armed({ spec: layered('rendered-2', '2') }), 'disarm'],
    ['armed, and the target is what runs', armed({ spec: layered('rendered-1', '1') }), 'disarm'],
    [
      'armed, and the permission is for another target',
      armed({ spec: layered('rendered-3', '3', nextBoot('rendered-3', '3')) }),
      'disarm',
    ],
    [
      'armed, and a grant comes',
      armed({ spec: layered('rendered-2', '2', { ...permitted, ...grant('Disrupt', 'rendered-2', '2') }) }),
      'disarm',
    ],
    ['armed in an earlier boot', armed({ bootID: 'boot-2' }), 'disarm'],
    ['armed, and somebody staged another deployment', armed({ nextDeployment: 'other.0' }), 'disarm'],
    [
      'armed under other policies',
      armed({ spec: layered('rendered-2', '2', { ...permitted, policyDigest: 'sha256:new' }) }),
      'disarm',
    ],
    [
      'armed, and found irreconcilable since',
      armed({ spec: layered('rendered-2', '2', { ...permitted, irreconcilable: 'disks' }) }),
      'disarm',
    ],
    ['armed by a daemon that has forgotten what it prepared', armed({ prepared: undefined }), 'disarm'],
    [
      'armed, and verifying what booted',
      armed({ journal: verifying, bootID: 'boot-2', bootedImage: image('2') }),
      'verify',
    ],
  ])('%s', (_name, observed, kind) => {
    expect(decide(observed).kind).toBe(kind);
  });
});

describe('a node that is armed while somebody else holds it stays so', () => {
  const heldBy = 'its lease is held by ops';
  test.each<[string, DaemonObservation]>([
    ['with the permission for it', armed({ spec: layered('rendered-2', '2', { ...permitted, heldBy }) })],
    ['and without', armed({ spec: layered('rendered-2', '2', { heldBy }) })],
    ['with another target', armed({ spec: layered('rendered-3', '3', { heldBy }) })],
    [
      'with other policies',
      armed({ spec: layered('rendered-2', '2', { ...permitted, policyDigest: 'x', heldBy }) }),
    ],
    [
      'and something else staged beside it',
      armed({ spec: layered('rendered-2', '2', { ...permitted, heldBy }), nextDeployment: 'theirs.0' }),
    ],
  ])('%s', (_what, observation) => {
    expect(decide(observation)).toEqual({ kind: 'leaveAlone', why: heldBy });
    const { heldBy: _, ...free } = observation.spec;
    expect(decide({ ...observation, spec: free }).kind).not.toBe('leaveAlone');
  });
});
