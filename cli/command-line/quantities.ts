import { type Command, InvalidArgumentError, Option } from 'commander';
import { DURATION_UNITS } from '../../api/duration.ts';

/**
 * Parses a duration as kubectl's flags accept it: `90s`, `30m`, `2h`, `1h30m`, `7d`.
 *
 * @returns ms, more than 0.
 * @throws InvalidArgumentError, which commander prints with the flag's name.
 */
export function parseDurationFlag(text: string): number {
  const parts = /^(\d+d)?(\d+h)?(\d+m)?(\d+s)?$/.exec(text)?.slice(1) ?? [];
  const ms = parts.reduce((sum, part) => {
    if (part === undefined) return sum;
    return sum + Number(part.slice(0, -1)) * DURATION_UNITS[part.at(-1) as keyof typeof DURATION_UNITS];
  }, 0);
  if (ms > 0 && Number.isSafeInteger(ms)) return ms;
  throw new InvalidArgumentError('Expected a duration such as 90s, 30m, 2h, 1h30m or 7d');
}

/** @returns the flag `--timeout`, in ms. @param standard its default, as formatDuration writes it. */
export function timeoutFlag(standard: string): Option {
  return new Option('--timeout <span>', 'maximum time to wait, such as 90s, 30m or 2h')
    .argParser(parseDurationFlag)
    .default(parseDurationFlag(standard), standard);
}

/** @returns bytes in the unit that leaves one to three digits before the point. */
export function formatBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const rank = Math.min(bytes < 1 ? 0 : Math.floor(Math.log2(bytes) / 10), units.length - 1);
  const value = bytes / 1024 ** rank;
  return `${rank === 0 ? value : value.toFixed(1)} ${units[rank]}`;
}

/** Flags of commands that can wait for the rollout that they started. */
export interface WaitFlags {
  readonly wait?: boolean;
  /** ms */
  readonly timeout: number;
}

/** @returns the command with `--wait` and `--timeout`. @param until the state to wait for, for the help. */
export function withWaitFlags(command: Command, until: string): Command {
  return command.option('--wait', `wait until ${until}`).addOption(timeoutFlag('2h'));
}
