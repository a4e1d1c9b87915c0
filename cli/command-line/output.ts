import { Option } from 'commander';
import { stringify } from 'yaml';
import type { z } from 'zod';

/** What commands print on standard output: text for people, JSON or YAML for programs. */

/** How commands about MachineConfigs print; the first is for people, and the default. */
export const TABLE_FORMATS = ['table', 'json', 'yaml'];

/** @param choices the first is the default. */
export function outputFlag(...choices: string[]): Option {
  return new Option('-o, --output <format>', 'output format').choices(choices).default(choices[0]);
}

/** Prints text, ended by a line feed. */
export function print(text: string): void {
  process.stdout.write(text.endsWith('\n') ? text : `${text}\n`);
}

/**
 * Prints a value for programs.
 *
 * @param format `json` or `yaml`.
 * @param schema what the reference promises (output-schemas.ts).
 * @throws ZodError when the value is not what is promised: scripts must not find that out.
 */
export function printAs(format: string, schema: z.ZodType, value: unknown): void {
  const checked = schema.parse(value);
  print(
    format === 'json'
      ? JSON.stringify(checked, null, 2)
      : stringify(checked, { aliasDuplicateObjects: false }),
  );
}
