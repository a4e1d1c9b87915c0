import { type Command, Option } from 'commander';
import { wholeNumber } from '../cluster/process.ts';
import { ACTION_LIMIT_MS, type DaemonOptions, HEALTH_LIMITS } from './loop.ts';
import { withActionLimit } from './steps/act-on-services.ts';

/** What the flags say of time limits, in seconds; those of single actions in milliseconds. */
export interface DaemonLimitFlags {
  readonly actionLimit: number;
  readonly actionLimitOf: ReadonlyMap<string, number>;
  readonly healthCheckLimit: number;
  readonly kubeletLimit: number;
  readonly daemonLimit?: number;
}

/** Adds the options that say how long actions and a boot into a target may take. */
export function addLimitOptions(command: Command): void {
  command
    .option(
      '--action-limit <seconds>',
      'time limit of one reload or restart; after it the node reboots instead',
      wholeNumber(1),
      ACTION_LIMIT_MS / 1000,
    )
    .addOption(
      new Option(
        '--action-limit-of <action=seconds>',
        'time limit of one action, instead of --action-limit: Restart(crio.service)=600, or Restart=600 for all of that type (repeatable)',
      )
        .argParser(withActionLimit)
        .default(new Map(), 'none'),
    )
    .option(
      '--health-check-limit <seconds>',
      'time limit for all health checks of the node to pass after a reboot into a target',
      wholeNumber(1),
      HEALTH_LIMITS.checksMs / 1000,
    )
    .option(
      '--kubelet-limit <seconds>',
      'time limit for the kubelet to be Ready after a reboot into a target',
      wholeNumber(1),
      HEALTH_LIMITS.kubeletMs / 1000,
    )
    .addOption(
      new Option(
        '--daemon-limit <seconds>',
        'time limit from boot for the daemon to start after a reboot into a target, after which the host rolls back by itself; 0: never',
      )
        .argParser(wholeNumber(0))
        .default(undefined, '5 minutes more than the longer of the two limits'),
    );
}

/** @returns the limits that the flags name, in milliseconds. */
export function daemonLimitsOf(
  flags: DaemonLimitFlags,
): Required<Pick<DaemonOptions, 'actionLimitMs' | 'ownActionLimitsMs' | 'healthLimits'>> {
  const { daemonLimit } = flags;
  return {
    actionLimitMs: flags.actionLimit * 1000,
    ownActionLimitsMs: flags.actionLimitOf,
    healthLimits: {
      checksMs: flags.healthCheckLimit * 1000,
      kubeletMs: flags.kubeletLimit * 1000,
      daemonMs: daemonLimit === undefined ? undefined : daemonLimit * 1000,
    },
  };
}
