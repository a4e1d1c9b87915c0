import { existsSync } from 'node:fs';
import path from 'node:path';

const ROOT = path.join(import.meta.dirname, '../..');

/**
 * @param program a TypeScript file of this checkout.
 * @returns the command that runs it with the Node that this process runs on, and its first arguments.
 */
export function runWithNode(program: string): readonly [command: string, ...args: string[]] {
  return [process.execPath, '--disable-warning=ExperimentalWarning', programFile(program)];
}

/**
 * @param program a TypeScript file of this checkout.
 * @param checkout root directory of another checkout, with its npm packages installed.
 * @returns the command that runs that checkout's file of this name with the Node of its own: its sources, because
 *   bundles are this checkout's.
 */
export function runInCheckout(
  program: string,
  checkout: string,
): readonly [command: string, ...args: string[]] {
  const node = path.join(checkout, 'node_modules/.bin/node');
  return [node, '--disable-warning=ExperimentalWarning', path.join(checkout, path.relative(ROOT, program))];
}

/**
 * @param program a TypeScript file of this checkout.
 * @returns its bundle where tests have made one (SHALE_PROGRAMS, `test/fixtures/bundle-programs.ts`), which starts in a
 *   third of the time; else the file itself.
 */
export function programFile(program: string): string {
  const { SHALE_PROGRAMS: name } = process.env;
  if (name === undefined || name === '') return program;
  const file = `${path.relative(ROOT, program).replace(/\.ts$/, '').replaceAll(path.sep, '-')}.mjs`;
  const bundle = path.join(ROOT, 'node_modules/.cache/shale-programs', name, file);
  return existsSync(bundle) ? bundle : program;
}
