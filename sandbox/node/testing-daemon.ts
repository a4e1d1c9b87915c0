import { watch } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import pino from 'pino';
import type { ApiClient } from '../../cluster/api-client.ts';
import { directoryNodeLayout } from '../../daemon/host/directory-host.ts';
import type { NodePorts } from '../../daemon/host/node-ports.ts';
import { type DaemonOptions, runDaemon } from '../../daemon/run.ts';
import type { TestNode } from './testing.ts';
import { NODE, type NodeControlPlane, startNodeControlPlane } from './testing-control-plane.ts';

export { HOLDER, NODE } from './testing-control-plane.ts';

/** A control plane, the daemon of one directory node, and the node's power button. */
export interface DaemonUnderTest extends NodeControlPlane {
  /** Ends the daemon's process and starts it anew. */
  restart(): Promise<void>;
}

/** Starts the daemon of a node; the node reboots whenever the daemon asks for it. */
export async function startDaemon(
  node: NodePorts & Pick<TestNode, 'dir' | 'boot'>,
  options: Partial<Pick<DaemonOptions, 'actionLimitMs' | 'healthLimits' | 'ports'>> & {
    /** The daemon's own way to the API server. */
    readonly clientOf?: (control: NodeControlPlane) => Promise<ApiClient>;
  } = {},
): Promise<DaemonUnderTest> {
  const log = pino({ level: process.env['SHALE_TEST_LOG'] ?? 'silent' });
  const control = await startNodeControlPlane(log);
  const daemonClient = (await options.clientOf?.(control)) ?? control.client;
  let ending = false;
  let process_: { readonly stop: AbortController; readonly ended: Promise<void> } | undefined;
  const start = () => {
    const stop = new AbortController();
    const ended = runDaemon({
      ports: options.ports ?? node,
      client: daemonClient,
      nodeName: NODE,
      actionLimitMs: options.actionLimitMs ?? 10_000,
      healthLimits: options.healthLimits ?? { checksMs: 1_000, kubeletMs: 1_000 },
      backoff: { firstMs: 50, longestMs: 500 },
      log,
      signal: stop.signal,
    });
    process_ = { stop, ended };
  };
  const stop = async () => {
    process_?.stop.abort();
    await process_?.ended;
  };
  const { rebootRequest } = directoryNodeLayout(node.dir);
  let power = Promise.resolve();
  const watcher = watch(node.dir, (_event, file) => {
    if (file !== path.basename(rebootRequest)) return;
    power = power.then(async () => {
      await stop();
      await rm(rebootRequest, { force: true });
      await node.boot();
      if (!ending) start();
    });
  });
  start();
  return {
    ...control,
    restart: async () => {
      await stop();
      start();
    },
    [Symbol.asyncDispose]: async () => {
      ending = true;
      watcher.close();
      await stop();
      await power;
      await stop();
      await control[Symbol.asyncDispose]();
    },
  };
}
