import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import type { ControlPlaneChoice } from './control-plane.ts';
import type { SandboxRecord } from './layout.ts';
import { sandboxLayout } from './layout.ts';
import { isLocked, SandboxInUse } from './lock.ts';
import type { NodeKindName } from './node-kind.ts';
import { runWithNode } from './programs.ts';
import { missingForSystemdNodes, missingRequirement } from './requirements.ts';
import { KEEP, ServeMessage } from './serve.ts';

/** A sandbox that this process started. It goes down with this process, unless it is kept. */
export interface StartedSandbox {
  readonly record: SandboxRecord;
  /** Rejects when the sandbox ends without having been asked to. */
  readonly failed: Promise<never>;
  /** Lets it stay when this process ends. */
  keep(): Promise<void>;
  /** Takes it down; resolves when nothing of it runs any more. */
  stop(): Promise<void>;
}

export interface StartOptions {
  readonly dir: string;
  readonly choice: ControlPlaneChoice;
  readonly nodes: NodeKindName;
  /** Root directory of another checkout of Shale, which is installed at first; absent: this one is. */
  readonly startWith?: string | undefined;
  /** Called with the next step, as text. */
  readonly onProgress: (what: string) => void;
  readonly signal: AbortSignal;
}

const START_MS = 300_000;
/** The first time, Debian is built from packages. */
const START_WITH_SYSTEMD_MS = 900_000;
/**
 * The longest grace of its processes, and time to take the nodes away; then it is killed, and its processes with it.
 */
const STOP_MS = 20_000;

const MAIN = path.join(import.meta.dirname, 'main.ts');

/**
 * Starts a sandbox in a process of its own, so that Ctrl-C doesn't reach it before this process has decided what
 * becomes of it.
 *
 * @returns once it is up. @throws SandboxInUse; Error with its own reason when it doesn't come up; the signal's reason.
 */
export async function startSandbox(options: StartOptions): Promise<StartedSandbox> {
  const missing = missingRequirement(process.getuid?.(), process.env['PATH'] ?? '');
  if (missing !== undefined) throw new Error(missing);
  const missingForNodes =
    options.nodes === 'systemd'
      ? missingForSystemdNodes(process.getuid?.(), process.env['PATH'] ?? '')
      : undefined;
  if (missingForNodes !== undefined) throw new Error(missingForNodes);
  const layout = sandboxLayout(options.dir);
  if (await isLocked(layout.dir)) throw new SandboxInUse(layout.dir);
  await mkdir(layout.dir, { recursive: true });
  const child = spawnServe(layout.ownLog, options);
  const exited = once(child, 'exit');
  const stop = async () => {
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
    await exited;
    clearTimeout(timer);
  };
  try {
    const record = await untilReady(child, layout.ownLog, options);
    const failed = exited.then(([code]): never => {
      throw new Error(`the sandbox exited with code ${String(code)}; see ${layout.ownLog}`);
    });
    // A caller that no longer waits for it has stopped it.
    failed.catch(() => undefined);
    return { record, failed, keep: () => keep(child), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function spawnServe(logFile: string, { dir, choice, nodes, startWith }: StartOptions): ChildProcess {
  const [command, ...args] = runWithNode(MAIN);
  const more = [
    ...(choice.kubeconfig === undefined ? [] : ['--kubeconfig', choice.kubeconfig]),
    ...(startWith === undefined ? [] : ['--start-with', startWith]),
  ];
  const log = openSync(logFile, 'w', 0o600);
  try {
    return spawn(command, [...args, 'sandbox', 'serve', '--dir', dir, '--nodes', nodes, ...more], {
      detached: true,
      stdio: ['ignore', log, log, 'ipc'],
    });
  } finally {
    closeSync(log);
  }
}

async function untilReady(
  child: ChildProcess,
  logFile: string,
  { nodes, onProgress, signal }: StartOptions,
): Promise<SandboxRecord> {
  const { promise, resolve, reject } = Promise.withResolvers<SandboxRecord>();
  const onMessage = (raw: unknown) => {
    const message = ServeMessage.parse(raw);
    switch (message.type) {
      case 'progress':
        onProgress(message.what);
        break;
      case 'ready':
        resolve(message.record);
        break;
      case 'failed':
        reject(new Error(message.message));
        break;
    }
  };
  const onExit = (code: number | null) =>
    reject(new Error(`the sandbox did not start (exit code ${code}); see ${logFile}`));
  const deadline = AbortSignal.any([
    signal,
    AbortSignal.timeout(nodes === 'systemd' ? START_WITH_SYSTEMD_MS : START_MS),
  ]);
  const onAbort = () => reject(deadline.reason);
  child.on('message', onMessage);
  child.once('exit', onExit);
  child.once('error', reject);
  deadline.addEventListener('abort', onAbort);
  try {
    deadline.throwIfAborted();
    return await promise;
  } finally {
    child.off('message', onMessage);
    child.off('exit', onExit);
    deadline.removeEventListener('abort', onAbort);
  }
}

async function keep(child: ChildProcess): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    child.send(KEEP, (error) => (error === null ? resolve() : reject(error)));
  });
  child.disconnect();
  child.unref();
}
