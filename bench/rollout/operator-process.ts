import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parse } from 'yaml';
import type { Deployment } from '../../api/kubernetes.ts';
import type { BenchFleet } from './fleet.ts';

/** The operator as it ships, in a process of its own. */
export interface OperatorProcess {
  /** @returns CPU seconds so far. */
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
export async function startOperator(access: BenchFleet['operatorAccess']): Promise<OperatorProcess> {
  const account = await mkdtemp(path.join(tmpdir(), 'shale-bench-'));
  await writeFile(path.join(account, 'token'), access.token, { mode: 0o600 });
  await writeFile(path.join(account, 'ca.crt'), access.caPem);
  const { hostname, port } = new URL(access.url);
  const child: ChildProcess = spawn(
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
        NODE_OPTIONS: [process.env['NODE_OPTIONS'], await shippedNodeOptions()].join(' ').trim(),
        KUBERNETES_SERVICE_HOST: hostname,
        KUBERNETES_SERVICE_PORT: port,
        SHALE_SERVICE_ACCOUNT_DIR: account,
      },
    },
  );
  const proc = (file: string) => readFile(`/proc/${child.pid}/${file}`, 'utf8');
  return {
    async cpuSeconds() {
      // Fields after the command's name in brackets; utime and stime are the 14th and 15th of all (proc(5)).
      const fields = (await proc('stat')).split(') ')[1]?.split(' ') ?? [];
      return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
    },
    async peakMegabytes() {
      return Number(/VmHWM:\s+(\d+) kB/.exec(await proc('status'))?.[1]) / 1000;
    },
    async stop() {
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
      await rm(account, { recursive: true });
    },
  };
}
