import { existsSync } from 'node:fs';
import path from 'node:path';
import { readOfProcess, readProcessTable } from '../../workshop/sandbox/process-table.ts';
import { noDirectoryNodes } from '../fixtures/test-node.ts';

/** The checkout of another version that `make versions FROM=<git ref>` names. */
export const OTHER_VERSION = process.env['SHALE_OTHER_VERSION'] ?? '';

/** Why no other version can be run here; nothing when one can. */
export const noOtherVersion: string | undefined = missingFor(OTHER_VERSION);

function missingFor(checkout: string): string | undefined {
  if (checkout === '') return 'no other version is given: make versions FROM=<git ref>';
  if (!existsSync(path.join(checkout, 'node_modules/.bin/node'))) {
    throw new Error(
      `SHALE_OTHER_VERSION: ${checkout} is no checkout of Shale with its npm packages installed; make versions FROM=<git ref> makes one`,
    );
  }
  return noDirectoryNodes;
}

/** @returns how many processes of this machine run a program of a checkout from its sources. */
export function processesOf(checkout: string): number {
  const isProgram = (argument: string) => argument.startsWith(`${checkout}/`) && argument.endsWith('.ts');
  const argumentsOf = (pid: number) => readOfProcess(pid, 'cmdline')?.toString().split('\0') ?? [];
  return readProcessTable().filter(({ pid }) => argumentsOf(pid).some(isProgram)).length;
}
