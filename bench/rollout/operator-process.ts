import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parse } from 'yaml';
import type { Deployment } from '../../api/kubernetes.ts';
import { DIE_WITH_PARENT } from '../../workshop/apiserver/control-plane/child-process.ts';
import type { OperatorAccess } from './fleet.ts';

/** The operator as it ships, in a process of its own. */
export interface OperatorProcess {
  /** Kills it without a chance to end, and starts another in its place. */
  replace(): Promise<void>;
  /** @returns CPU seconds so far, those of its predecessors among them. */
  cpuSeconds(): Promise<number>;
  /** @returns the most memory that it has had resident, in MB. */
  peakMegabytes(): Promise<number>;
  /** Rejects when it ends before it is stopped. */
  readonly died: Promise<never>;
  stop(): Promise<void>;
}

const MAIN = path.join(import.meta.dirname, '../../cli/main.ts');
const DEPLOYMENT = path.join(import.meta.dirname, '../../manifests/base/operator.yaml');
/** Of Linux' clock in /proc/PID/stat (sysconf(_SC_CLK_TCK), the same on every architecture that Node runs on). */
const TICKS_PER_SECOND = 100;

const OPERATOR = [
  'operator',
  '--image',
  'registry.test/shale:bench',
  '--staging-limit',
  '100',
  '--log-level',
  'error',
];

/** @returns what the shipped Deployment gives to Node. */
async function shippedNodeOptions(): Promise<string> {
  const deployment = parse(await readFile(DEPLOYMENT, 'utf8')) as Deployment;
  const env = deployment.spec.template.spec.containers[0]?.env ?? [];
  return env.find(({ name }) => name === 'NODE_OPTIONS')?.value ?? '';
}

/** Starts an operator that comes in as its service account does in a pod. */
export async function startOperator(access: OperatorAccess): Promise<OperatorProcess> {
  const account = await mkdtemp(path.join(tmpdir(), 'shale-bench-'));
  await writeFile(path.join(account, 'token'), access.token, { mode: 0o600 });
  await writeFile(path.join(account, 'ca.crt'), access.caPem);
  const { hostname, port } = new URL(access.url);
  const nodeOptions = [process.env['NODE_OPTIONS'], await shippedNodeOptions()].join(' ').trim();
  const { promise: died, reject } = Promise.withResolvers<never>();
  let isWanted = true;
  const start = (): ChildProcess => {
    const [command, ...before] = [...DIE_WITH_PARENT, process.execPath, MAIN, ...OPERATOR] as const;
    const started = spawn(command, before, {
      stdio: ['ignore', 'inherit', 'inherit'],
      env: {
        ...process.env,
        NODE_OPTIONS: nodeOptions,
        KUBERNETES_SERVICE_HOST: hostname,
        KUBERNETES_SERVICE_PORT: port,
        SHALE_SERVICE_ACCOUNT_DIR: account,
      },
    });
    started.once('error', reject);
    started.once('exit', (code, signal) => {
      if (isWanted) reject(new Error(`the operator ended by itself: ${signal ?? `exit code ${code}`}`));
    });
    return started;
  };
  let child = start();
  let [spent, peak] = [0, 0];
  const proc = (file: string) => readFile(`/proc/${child.pid}/${file}`, 'utf8');
  const cpuSeconds = async () => {
    // Fields after the command's name in brackets; utime and stime are the 14th and 15th of all (proc(5)).
    const fields = (await proc('stat')).split(') ')[1]?.split(' ') ?? [];
    return spent + (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
  };
  const peakMegabytes = async () => {
    const own = Number(/VmHWM:\s+(\d+) kB/.exec(await proc('status'))?.[1]) / 1000;
    return Math.max(peak, own);
  };
  const end = async (signal: NodeJS.Signals) => {
    isWanted = false;
    const ended = once(child, 'exit');
    if (child.kill(signal)) await ended;
  };
  return {
    async replace() {
      [spent, peak] = [await cpuSeconds(), await peakMegabytes()];
      await end('SIGKILL');
      child = start();
      isWanted = true;
    },
    cpuSeconds,
    peakMegabytes,
    died,
    async stop() {
      await end('SIGTERM');
      await rm(account, { recursive: true });
    },
  };
}
