import type { Command } from 'commander';
import { wholeNumber } from '../cluster/process.ts';
import type { Limits } from '../machineconfig/ignition/contents.ts';
import { limitsInMiB } from '../machineconfig/rendered-annotations.ts';

/** Flags that limit the decoded size of compressed contents of MachineConfigs. */
export interface LimitFlags {
  readonly maxFileMib?: number;
  readonly maxConfigMib?: number;
}

/** @returns the command with `--max-file-mib` and `--max-config-mib`. */
export function withLimitFlags(command: Command): Command {
  return command
    .option(
      '--max-file-mib <count>',
      'maximum size of one decoded file of a MachineConfig, in MiB (default 16)',
      wholeNumber(1),
    )
    .option(
      '--max-config-mib <count>',
      'maximum size of all decoded files of a MachineConfig, in MiB (default 64)',
      wholeNumber(1),
    );
}

/** @returns the limits, with the defaults for flags that are absent. */
export function limitsOf({ maxFileMib, maxConfigMib }: LimitFlags): Limits {
  return limitsInMiB({ file: maxFileMib, config: maxConfigMib });
}
