import { Option } from 'commander';
import { plural } from '../../api/plural.ts';
import { CommandError } from '../command-line/exit-codes.ts';
import { note } from '../command-line/output.ts';

/** @returns the flag by which warnings fail a command. */
export function strictFlag(): Option {
  return new Option('--strict', 'exit with code 1 if there are warnings');
}

/** Writes warnings to standard error, where they don't get into an output that scripts read. */
export function reportWarnings(warnings: readonly string[]): void {
  for (const warning of warnings) note(`warning: ${warning}`);
}

/** For `--strict`. @throws {CommandError} if there are warnings. */
export function failOnWarnings(warnings: readonly string[]): void {
  if (warnings.length === 0) return;
  throw new CommandError(`--strict: ${plural(warnings.length, 'warning')}`);
}
