import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parse } from 'yaml';
import type { Deployment } from '../../api/kubernetes.ts';
import type { OperatorAccess } from './fleet.ts';

/** The operator as it ships, in a process of its own. */
export interface OperatorProcess {
  /** Kills it without a chance to end, and starts another in its place. */
  replace(): Promise<void>;
  /** @returns CPU seconds so far, those of its predecessors among them. */
  cpuSeconds(): Promise<number>;
  /** @returns the most memory that it has had resident, in MB. */
  peakMegabytes(): Promise<number>;
  stop(): Promise<void>;
}

const MAIN = path.join(import.meta.dirname, '../../cli/main.ts');
const DEPLOYMENT = path.join(import.meta.dirname, '../../manifests/base/operator.yaml');
/** Of Linux' clock in /proc/PID/stat (sysconf(_SC_CLK_TCK), the same on every architecture that Node runs on). */
const TICKS_PER_SECOND = 100;

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
  const start = (): ChildProcess =>
    spawn(
      process.execPath,
      [
        MAIN,
        'operator',
        '--image',
        'registry.test/shale:bench',
        '--staging-limit',
        '100',
        '--log-level',
        'error',
      ],
      {
        stdio: ['ignore', 'inherit', 'inherit'],
        env: {
          ...process.env,
          NODE_OPTIONS: nodeOptions,
          KUBERNETES_SERVICE_HOST: hostname,
          KUBERNETES_SERVICE_PORT: port,
          SHALE_SERVICE_ACCOUNT_DIR: account,
        },
      },
    );
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
  return {
    async replace() {
      [spent, peak] = [await cpuSeconds(), await peakMegabytes()];
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
      child = start();
    },
    cpuSeconds,
    peakMegabytes,
    async stop() {
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
      await rm(account, { recursive: true });
    },
  };
}
