import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import path from 'node:path';
import { DIE_WITH_PARENT } from '../../workshop/apiserver/control-plane/child-process.ts';
import { runWithNode } from '../../workshop/sandbox/programs.ts';

const MAIN = path.join(import.meta.dirname, '../../cli/main.ts');

/** @param logFile everything that it prints is appended to it. @param args of `shale daemon`. */
export function startDaemon(logFile: string, args: readonly string[]): ChildProcess {
  const log = openSync(logFile, 'a');
  try {
    const [command, ...before] = DIE_WITH_PARENT;
    const node = [...runWithNode(MAIN), 'daemon'];
    return spawn(command, [...before, ...node, ...args], { stdio: ['ignore', log, log] });
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
