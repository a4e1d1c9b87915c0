import { type ChildProcess, fork } from 'node:child_process';
import path from 'node:path';
import { execa } from 'execa';
import { present } from '../../api/present.ts';
import { programFile } from '../../workshop/sandbox/programs.ts';

export const root = path.join(import.meta.dirname, '../..');

export interface ShaleRun {
  readonly stdout: string;
  readonly stderr: string;
  readonly exitCode: number | undefined;
}

export interface ShaleCall {
  readonly args: readonly string[];
  readonly input?: string | undefined;
  readonly env?: Record<string, string> | undefined;
}

type Surroundings = Omit<ShaleCall, 'args'>;

/** Runs shale as a person would, in the project's folder: in a process of its own. */
export async function shaleProcess(
  args: readonly string[],
  { input, env }: Surroundings = {},
): Promise<ShaleRun> {
  const { stdout, stderr, exitCode } = await execa(path.join(root, 'bin/shale'), args, {
    cwd: root,
    reject: false,
    ...present({ input, env }),
  });
  return { stdout, stderr, exitCode };
}

/** Runs a command of shale to its end, as a person would, but in a process that runs them all (`shale-server.ts`). */
export function shale(args: readonly string[], surroundings: Surroundings = {}): Promise<ShaleRun> {
  server ??= startServer();
  return server.run({ args, ...surroundings });
}

/** @returns a MachineConfig of worker's as JSON, which is YAML too. */
export function machineConfig(name: string, config: object, more: object = {}): string {
  return JSON.stringify({
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name, labels: { 'machineconfiguration.openshift.io/role': 'worker' } },
    spec: { config: { ignition: { version: '3.4.0' }, ...config }, ...more },
  });
}

interface Server {
  run(call: ShaleCall): Promise<ShaleRun>;
}

let server: Server | undefined;

function startServer(): Server {
  const child = fork(programFile(path.join(import.meta.dirname, 'shale-server.ts')), {
    cwd: root,
    execPath: path.join(root, 'node_modules/.bin/node'),
    execArgv: ['--disable-warning=ExperimentalWarning'],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  const waiting = new Map<number, PromiseWithResolvers<ShaleRun>>();
  let errors = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  child.on('message', ({ id, run }: { id: number; run: ShaleRun }) => {
    waiting.get(id)?.resolve(run);
    waiting.delete(id);
    if (waiting.size === 0) leave(child);
  });
  child.once('exit', (code) => {
    server = undefined;
    for (const { reject } of waiting.values()) reject(new Error(`shale ended (${code}): ${errors}`));
  });
  let id = 0;
  return {
    run: (call) => {
      id += 1;
      const result = Promise.withResolvers<ShaleRun>();
      waiting.set(id, result);
      child.ref();
      child.channel?.ref();
      child.send({ id, call });
      return result.promise;
    },
  };
}

/** An idle server must not keep the process running. */
function leave(child: ChildProcess): void {
  child.unref();
  child.channel?.unref();
}
