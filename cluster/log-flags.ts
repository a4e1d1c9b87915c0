import { type Command, InvalidArgumentError, Option } from 'commander';
import { LOG_FORMATS, type LogFormat } from './log.ts';

/** The flags of a process about its log. */
export interface LogFlags {
  readonly logLevel: string;
  readonly logFormat: LogFormat;
}

/** Those of pino. */
const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

/** @param level that applies where the flag says none. @returns the command, with the flags of {@link LogFlags}. */
export function withLogFlags(command: Command, level = 'info'): Command {
  return command
    .option('--log-level <level>', 'log level: debug, info, warn or error', logLevel, level)
    .addOption(
      new Option(
        '--log-format <format>',
        'rfc3339: log lines have times of RFC 3339 and names of levels; pino: milliseconds and numbers, for the tools of pino',
      )
        .choices(LOG_FORMATS)
        .default('rfc3339'),
    );
}

/** @throws {InvalidArgumentError} that says what would be right. */
function logLevel(text: string): string {
  if (LOG_LEVELS.includes(text)) return text;
  throw new InvalidArgumentError(`Expected ${LOG_LEVELS.slice(0, -1).join(', ')} or ${LOG_LEVELS.at(-1)}`);
}
