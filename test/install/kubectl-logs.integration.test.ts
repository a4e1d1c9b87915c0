/** kubectl reads the logs of a sandbox's pods, whose processes log what they are told. */
import { appendFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { Nodes, type Pod, Pods } from '../../api/kubernetes.ts';
import type { NewObject } from '../../api/object.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { tokenConnection } from '../../cluster/connection.ts';
import { createApiClient } from '../../cluster/http-api-client.ts';
import { type Api, START_MS, startApi } from '../../workshop/apiserver/conformance/api.ts';
import { createKubelets } from '../../workshop/sandbox/workloads/kubelets.ts';
import { PodRunner } from '../../workshop/sandbox/workloads/pod-runner.ts';
import { Workloads } from '../../workshop/sandbox/workloads/run-workloads.ts';
import { patience } from '../fixtures/patience.ts';
import { isOnPath } from './on-path.ts';

const namespace = 'default';
const stop = new AbortController();
const { signal } = stop;
/** Logs each line that its argument, a named pipe, has, and ends at the line `end`. */
const PROGRAM = 'while read -r line; do echo "$line"; [ "$line" != end ] || exit 1; done <>"$1"';
const log = pino({ enabled: false });

let dir: string;
let api: Api;
let client: ApiClient;
let workloads: Promise<void>;
let pipe: string;
let runner: PodRunner;
let running: Workloads;
/** Of the machine of all pods. */
let isUp = true;

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'shale-kubectl-logs-'));
  pipe = path.join(dir, 'pipe');
  await execa('mkfifo', [pipe]);
  for (const part of ['pods', 'logs']) await mkdir(path.join(dir, part));
  const kubelets = createKubelets();
  api = await startApi({ assets: undefined, readContainerLog: kubelets.readContainerLog });
  await writeFile(path.join(dir, 'kubeconfig'), api.kubeconfig(), { mode: 0o600 });
  const { url, token, caPem } = api.access;
  client = createApiClient(tokenConnection(url, token, caPem));
  await client.create(Nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-1' } }, { signal });
  runner = new PodRunner({
    environment: {
      apiServer: { host: '127.0.0.1', port: 1, caPem: '' },
      createToken: () => Promise.reject(new Error('these pods have no token')),
      daemonHost: async () => ({ args: [] }),
      findSecret: async () => undefined,
      podsDirectory: path.join(dir, 'pods'),
    },
    shale: () => ['sh', '-c', PROGRAM, 'sh', pipe],
    logFile: ({ metadata: { name } }) => path.join(dir, 'logs', name),
    nodeIsUp: () => isUp,
    onExit: () => running.wake(),
    log,
  });
  kubelets.read(runner);
  running = new Workloads({ client, runner, log, signal });
  workloads = running.run();
}, START_MS);
afterAll(async () => {
  stop.abort();
  await workloads;
  await api.stop();
  await rm(dir, { recursive: true });
});

function kubectl(...args: string[]) {
  const env = { KUBECONFIG: path.join(dir, 'kubeconfig'), HOME: dir };
  return execa('kubectl', args, { env, timeout: patience(60_000), reject: false, all: true });
}

/** Has the pod's process log lines; `end` ends it. */
async function say(...lines: string[]): Promise<void> {
  await appendFile(pipe, lines.map((line) => `${line}\n`).join(''));
}

const logs = async (...args: string[]) => (await kubectl('logs', ...args)).all;
const poll = (read: () => unknown) => expect.poll(read, { timeout: patience(30_000) });
const restarts = async (pod: string) =>
  (await client.get(Pods, pod, { namespace, signal })).status?.containerStatuses?.[0]?.restartCount;

/** Starts a pod, which runs until the test ends. */
async function startPod(name: string): Promise<void> {
  const pod: NewObject<Pod> = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { app: name } },
    spec: {
      nodeName: 'node-1',
      automountServiceAccountToken: false,
      containers: [{ name: 'operator', image: 'shale:latest' }],
    },
  };
  await client.create(Pods, pod, { namespace, signal });
  onTestFinished(() => deletePod(name));
  await poll(() => phase(name)).toBe('Running');
}

const phase = async (name: string) => (await client.find(Pods, name, { namespace, signal }))?.status?.phase;

async function deletePod(name: string): Promise<void> {
  if ((await client.find(Pods, name, { namespace, signal })) === undefined) return;
  await client.delete(Pods, name, { namespace, signal });
  await poll(() => client.find(Pods, name, { namespace, signal })).toBeUndefined();
}

/** @returns kubectl that follows a log, and the lines that it has printed. */
function follow(...args: string[]) {
  const following = kubectl('logs', '--follow', ...args);
  let printed = '';
  following.all.on('data', (data: Buffer) => {
    printed += data.toString();
  });
  return { following, printed: () => printed.split('\n').filter((line) => line !== '') };
}

describe.skipIf(!isOnPath('kubectl'))('kubectl logs', { timeout: patience(120_000) }, () => {
  test('follows a log until the reader interrupts it', async () => {
    await startPod('followed');
    await say('one', 'two');
    await poll(() => logs('followed')).toBe('one\ntwo');
    const { following, printed } = follow('followed', '--tail=1');
    await poll(printed).toEqual(['two']);
    await say('three');
    await poll(printed).toEqual(['two', 'three']);
    await say('four');
    await poll(printed).toEqual(['two', 'three', 'four']);
    following.kill('SIGINT');
    await following;
  });

  test('follows a log by the label of its pod, and ends with the pod', async () => {
    await startPod('labelled');
    const { following, printed } = follow('--selector=app=labelled', '--prefix', '--all-containers');
    await say('one');
    await poll(printed).toEqual(['[pod/labelled/operator] one']);
    await deletePod('labelled');
    expect((await following).exitCode).toBe(0);
  });

  test('shows the log of the container that runs, and with --previous that of the one before', async () => {
    await startPod('restarted');
    expect(await logs('restarted', '--previous')).toContain(
      'previous terminated container "operator" in pod "restarted" not found',
    );
    await say('of the first');
    const { following, printed } = follow('restarted');
    await poll(printed).toEqual(['of the first']);
    await say('end');
    expect((await following).exitCode).toBe(0);
    expect(printed()).toEqual(['of the first', 'end']);
    await poll(() => restarts('restarted')).toBe(1);
    expect(await logs('restarted', '--previous')).toBe('of the first\nend');
    await say('of the second');
    await poll(() => logs('restarted')).toBe('of the second');
    expect(await logs('restarted', '--previous')).toBe('of the first\nend');
    expect(await logs('restarted', '--previous', '--follow', '--tail=1')).toBe('end');
    await say('end');
    await poll(() => restarts('restarted')).toBe(2);
    expect(await logs('restarted', '--previous', '--container=operator')).toBe('of the second\nend');
  });

  test('shows with --previous what was logged before the machine rebooted', async () => {
    await startPod('rebooted');
    await say('before');
    const { following, printed } = follow('rebooted');
    await poll(printed).toEqual(['before']);
    isUp = false;
    await runner.killNode('node-1');
    running.wake();
    expect((await following).exitCode).toBe(0);
    isUp = true;
    running.wake();
    await say('after');
    await poll(() => logs('rebooted')).toBe('after');
    expect(await logs('rebooted', '--previous')).toBe('before');
  });
});
