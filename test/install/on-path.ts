import { existsSync } from 'node:fs';
import path from 'node:path';

/**
 * @returns whether a program is on the PATH: a test that asks another tool's opinion is skipped where there is none.
 */
export function isOnPath(program: string): boolean {
  return (process.env['PATH'] ?? '')
    .split(':')
    .some((directory) => existsSync(path.join(directory, program)));
}
