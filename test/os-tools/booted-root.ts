import { execFile } from 'node:child_process';
import path from 'node:path';
import { deadline } from '../fixtures/patience.ts';

/** Programs that take the place of a machine's own on a path. */
export const STAND_INS = path.join(import.meta.dirname, 'bin');

export interface OstreeRun {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

const TIMEOUT_MS = 120_000;

/** Runs ostree(1) on a booted directory node, as `bin/ostree` says. @param dir of the node. @returns how it ended. */
export async function ostreeOnNode(
  dir: string,
  args: readonly string[],
  signal = deadline(TIMEOUT_MS),
): Promise<OstreeRun> {
  const env = { ...process.env, LC_ALL: 'C', STAND_IN_NODE: dir };
  const options = { env, signal, encoding: 'utf8' } as const;
  return new Promise((resolve) => {
    execFile(path.join(STAND_INS, 'ostree'), args, options, (error, stdout, stderr) => {
      resolve({ exitCode: error === null ? 0 : 1, stdout, stderr });
    });
  });
}
