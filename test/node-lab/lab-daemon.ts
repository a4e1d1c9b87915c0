import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import path from 'node:path';
import { DIE_WITH_PARENT } from '../../workshop/apiserver/control-plane/child-process.ts';
import { runWithNode } from '../../workshop/sandbox/programs.ts';

const MAIN = path.join(import.meta.dirname, '../../cli/main.ts');

const DYING = path.join(import.meta.dirname, 'dying-daemon.ts');

/**
 * Where a daemon kills itself, by the number of the point, from 0; or the file to which it writes how many it has
 * passed.
 */
export type DeathPoint = { readonly at: number } | { readonly countTo: string };

/**
 * @param logFile everything that it prints is appended to it. @param args of `shale daemon`.
 * @param death points are the changes that it makes of the disk, and the commands that it starts.
 */
export function startDaemon(logFile: string, args: readonly string[], death?: DeathPoint): ChildProcess {
  const log = openSync(logFile, 'a');
  try {
    const [command, ...before] = DIE_WITH_PARENT;
    const [program, ...options] = runWithNode(MAIN);
    const preload = death === undefined ? [] : ['--import', DYING];
    const node = [program, ...preload, ...options, 'daemon'];
    return spawn(command, [...before, ...node, ...args], {
      stdio: ['ignore', log, log],
      env: { ...process.env, ...pointOf(death) },
    });
  } finally {
    closeSync(log);
  }
}

/** Kills a daemon without notice. */
export async function killDaemon(daemon: ChildProcess | undefined): Promise<void> {
  if (daemon === undefined || daemon.exitCode !== null || daemon.signalCode !== null) return;
  const exited = once(daemon, 'exit');
  daemon.kill('SIGKILL');
  await exited;
}

function pointOf(death: DeathPoint | undefined): NodeJS.ProcessEnv {
  if (death === undefined) return {};
  return 'at' in death ? { SHALE_LAB_DIES_AT: String(death.at) } : { SHALE_LAB_POINTS: death.countTo };
}
