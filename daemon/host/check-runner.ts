import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { errorMessage } from '../../api/error-message.ts';

/** How a check has ended. */
type CheckEnd = { readonly passed: true } | { readonly passed: false; readonly why: string };

interface CheckOptions {
  readonly limitMs: number;
  readonly signal: AbortSignal;
}

/** A file of the node that can be run. */
export interface CheckProgram {
  /** Where the daemon sees it. */
  readonly place: string;
  /** What runs it; absent where it runs by itself. */
  readonly interpreter?: string;
}

/**
 * Runs one check of the node's health, with no input, at `/` of the node. The environment has nothing of the daemon's
 * own, and `SHALE_ROOT` names the node's root.
 *
 * @returns how it ended; one that can't be run has failed. @throws the signal's reason.
 */
export type RunCheck = (program: CheckProgram, options: CheckOptions) => Promise<CheckEnd>;

interface CheckRunnerOptions {
  /** The running root as the daemon sees it. */
  readonly root: string;
  /** The same directory as the check sees it: `/`, but for a node that is a directory. */
  readonly rootInside: string;
  /** Put before each command, to enter the host's namespaces. */
  readonly prefix: readonly string[];
}

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
/** The last output of a check is copied to a status and an event, which many users can read, so it is limited. */
const LAST_LINES = 10;
const LAST_CHARACTERS = 1_000;
/** Of its output, of which the last lines are taken. */
const KEPT_BYTES = 8_192;
/** For what a check wrote last, once it has ended. */
const DRAIN_MS = 200;
/** Between SIGTERM and SIGKILL of a check whose time is over (timeout(1)). */
const KILL_AFTER_SECONDS = 5;

/** @returns a runner of checks in the namespaces of a host. */
export function checkRunner({ root, rootInside, prefix }: CheckRunnerOptions): RunCheck {
  return async ({ place, interpreter }, { limitMs, signal }) => {
    signal.throwIfAborted();
    const seconds = Math.max(1, Math.ceil(limitMs / 1000));
    const [program = '', ...args] = [
      ...prefix,
      ...['env', '--ignore-environment', `--chdir=${rootInside}`],
      ...[`PATH=${PATH}`, 'LC_ALL=C.UTF-8', `SHALE_ROOT=${rootInside}`],
      // Ends what the check has started as well.
      ...['timeout', `--kill-after=${KILL_AFTER_SECONDS}`, String(seconds)],
      ...(interpreter === undefined ? [] : [interpreter]),
      path.join(rootInside, path.relative(root, place)),
    ];
    const startedAt = performance.now();
    // In its own process group: where nsenter forks, it does not forward signals.
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    let output = Buffer.alloc(0);
    const collect = (chunk: Buffer) => {
      output = Buffer.concat([output, chunk]).subarray(-KEPT_BYTES);
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    const stop = () => endGroup(child);
    signal.addEventListener('abort', stop, { once: true });
    try {
      const closed = once(child, 'close');
      const [code, killedBy] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
      signal.throwIfAborted();
      // What a check leaves running may hold its streams open.
      await Promise.race([closed, delay(DRAIN_MS)]);
      if (code === 0) return { passed: true };
      const isLate = performance.now() - startedAt >= seconds * 1000;
      const how = isLate ? `took longer than ${seconds} s` : `failed (${killedBy ?? `exit code ${code}`})`;
      const said = lastLines(output.toString('utf8'));
      return { passed: false, why: said === '' ? how : `${how}: ${said}` };
    } catch (error) {
      signal.throwIfAborted();
      return {
        passed: false,
        why: `could not be run: ${errorMessage(error)}`,
      };
    } finally {
      signal.removeEventListener('abort', stop);
      child.stdout.destroy();
      child.stderr.destroy();
    }
  };
}

/**
 * Ends a check and, as timeout(1) hands the signal on, what it has started. A check that has already ended is ignored.
 */
function endGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGTERM');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function lastLines(text: string): string {
  return text.trim().split('\n').slice(-LAST_LINES).join('\n').slice(-LAST_CHARACTERS);
}
