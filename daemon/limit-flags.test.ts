import { Command } from 'commander';
import { expect, test } from 'vitest';
import { addLimitOptions, type DaemonLimitFlags, daemonLimitsOf } from './limit-flags.ts';
import { daemonLimitMs } from './steps/health.ts';

function limits(...args: readonly string[]): ReturnType<typeof daemonLimitsOf> {
  const command = new Command().exitOverride().configureOutput({ writeErr: () => undefined });
  addLimitOptions(command);
  return daemonLimitsOf(command.parse(args, { from: 'user' }).opts<DaemonLimitFlags>());
}

test('unless given, actions may take 5 minutes, checks 5, the kubelet 10, and the daemon 15 from the boot on', () => {
  expect(limits()).toEqual({
    actionLimitMs: 300_000,
    ownActionLimitsMs: new Map(),
    healthLimits: { checksMs: 300_000, kubeletMs: 600_000 },
  });
  expect(daemonLimitMs(limits().healthLimits)).toBe(900_000);
});

test('each is given in seconds', () => {
  const given = ['--action-limit=7', '--health-check-limit=8', '--kubelet-limit=9', '--daemon-limit=10'];
  expect(
    limits(...given, '--action-limit-of=Restart(crio.service)=11', '--action-limit-of=Reload=12'),
  ).toEqual({
    actionLimitMs: 7_000,
    ownActionLimitsMs: new Map([
      ['Restart(crio.service)', 11_000],
      ['Reload', 12_000],
    ]),
    healthLimits: { checksMs: 8_000, kubeletMs: 9_000, daemonMs: 10_000 },
  });
});

test('without a limit for the daemon, which 0 means, no host rolls back by itself', () => {
  expect(limits('--daemon-limit=0').healthLimits.daemonMs).toBe(0);
  expect(daemonLimitMs(limits('--daemon-limit=0').healthLimits)).toBeUndefined();
});

test.each(['--action-limit=0', '--health-check-limit=0', '--kubelet-limit=0', '--daemon-limit=-1'])(
  '%s is refused',
  (flag) => {
    expect(() => limits(flag)).toThrow(/Expected a whole number/);
  },
);
