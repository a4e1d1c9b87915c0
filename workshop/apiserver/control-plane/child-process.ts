import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';

/** How long a process has to end by itself after SIGTERM before it is killed. */
const GRACE_MS = 6_000;

export interface ProcessOptions {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** File that its standard output and error are appended to. */
  readonly logFile: string;
  readonly onExit: (exit: {
    readonly pid: number;
    readonly code: number | null;
    readonly signal: NodeJS.Signals | null;
  }) => void;
}

export interface RunningProcess {
  readonly name: string;
  readonly pid: number;
  /** SIGTERM, and SIGKILL when the grace is over. Resolves when the process is gone. */
  stop(): Promise<void>;
  /** SIGKILL: as when a machine loses power. Resolves when the process is gone. */
  kill(): Promise<void>;
}

/**
 * Starts a process that can't outlive this one.
 *
 * @throws Error when the command can't be started.
 */
export async function startProcess(options: ProcessOptions): Promise<RunningProcess> {
  const log = openSync(options.logFile, 'a');
  let child: ChildProcess;
  try {
    const [command, ...before] = DIE_WITH_PARENT;
    child = spawn(command, [...before, options.command, ...options.args], {
      env: { ...options.env },
      stdio: ['ignore', log, log],
    });
  } finally {
    closeSync(log);
  }
  const exited = new Promise<void>((resolve) => {
    child.once('exit', (code, signal) => {
      resolve();
      options.onExit({ pid: child.pid ?? 0, code, signal });
    });
  });
  await once(child, 'spawn');
  const { pid } = child;
  if (pid === undefined) throw new Error(`${options.name}: started without a process id`);
  return {
    name: options.name,
    pid,
    stop: async () => {
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), GRACE_MS);
      await exited;
      clearTimeout(timer);
    },
    kill: async () => {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

/**
 * Runs the rest of its arguments as a process that can't outlive this one: it is killed even when this one is killed
 * without a chance to stop it (prctl(2), PR_SET_PDEATHSIG; setpriv(1)).
 */
export const DIE_WITH_PARENT = ['setpriv', '--pdeathsig', 'KILL', '--'] as const;
