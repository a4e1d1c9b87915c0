import { access, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type MachineConfigNode, MachineConfigNodes } from '../../api/machine-config-node.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { createApiClient } from '../../cluster/http-api-client.ts';
import { connectWith } from '../../workshop/sandbox/control-plane.ts';
import { type SandboxRecord, sandboxLayout } from '../../workshop/sandbox/layout.ts';
import { type DirectoryNodeLayout, directoryNodeLayout } from '../../workshop/sandbox/node/directory-host.ts';
import { type StartedSandbox, startSandbox } from '../../workshop/sandbox/start.ts';
import { type ShaleRun, shale } from '../cli/shale-process.ts';
import { keepLogFile } from '../fixtures/kept-logs.ts';
import { deadline } from '../fixtures/patience.ts';

/** A whole cluster: every process of Shale's as it ships, and nodes with an OS in a directory each. */
export interface SandboxUnderTest {
  readonly client: ApiClient;
  readonly record: SandboxRecord;
  readonly registryHost: string;
  /** The environment of its administrator's commands. */
  readonly env: Readonly<Record<string, string>>;
  /** @returns the nodes whose daemons say that they are in the mode. */
  nodesIn(mode: 'Standard' | 'Layered'): Promise<readonly MachineConfigNode[]>;
  /** @returns where a node keeps its things. */
  layoutOf(node: string): DirectoryNodeLayout;
  /** Runs shale as the cluster's administrator. */
  shale(...args: readonly string[]): Promise<ShaleRun>;
  stop(): Promise<void>;
}

/**
 * An eviction that breaks off with its operator may have taken its place in a budget already, and
 * kube-controller-manager gives that back after two minutes (its disruption controller's DeletionTimeout).
 */
const DEADLINE_MS = 200_000;

/** Whose logs explain a failure. The others are of one node each, or of builds. */
const PODS = ['shale-operator-0', ...[0, 1, 2].map((worker) => `shale-daemon-worker-${worker}`)];

/**
 * @param startWith root directory of another checkout of Shale, which is installed at first; absent: this one is.
 * @returns it once its processes were started.
 */
export async function startSandboxUnderTest(
  signal: AbortSignal,
  startWith?: string,
): Promise<SandboxUnderTest> {
  const dir = await mkdtemp(path.join(tmpdir(), 'shale-sandbox-'));
  const sandbox: StartedSandbox = await startSandbox({
    dir,
    choice: { assets: process.env['KUBEBUILDER_ASSETS'] },
    nodes: 'directory',
    startWith,
    onProgress: () => undefined,
    signal,
  });
  for (const pod of PODS) {
    const log = sandboxLayout(dir).log(pod);
    await access(log);
    keepLogFile(pod, log);
  }
  const client = createApiClient(await connectWith(sandbox.record.access));
  const env = { KUBECONFIG: sandboxLayout(dir).kubeconfig, HOME: dir };
  return {
    client,
    record: sandbox.record,
    registryHost: sandbox.record.registryHost,
    env,
    nodesIn: async (mode) => {
      const { items } = await client.list(MachineConfigNodes, { signal });
      return items.filter(({ status }) => status?.mode === mode);
    },
    layoutOf: (node) => directoryNodeLayout(sandboxLayout(dir).node(node)),
    shale: (...args) => shale(args, { env }),
    stop: async () => {
      await sandbox.stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** @throws Error when it does not become so in time. */
export async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const end = deadline(DEADLINE_MS);
  while (!(await holds())) {
    if (end.aborted) throw new Error(`not within ${DEADLINE_MS / 1000} s: ${what}`);
    await delay(50);
  }
}
