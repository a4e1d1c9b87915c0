import pino from 'pino';
import type { ApiClient } from '../../../cluster/api-client.ts';
import type { NodePorts } from '../../../daemon/host/node-ports.ts';
import { type DaemonOptions, runDaemon } from '../../../daemon/run.ts';
import { untilRebootRequested } from './reboot-request.ts';
import type { TestNode } from './testing.ts';
import { NODE, type NodeControlPlane, startNodeControlPlane } from './testing-control-plane.ts';

export { HOLDER, NODE } from './testing-control-plane.ts';

/** The daemon of one directory node, and the node's power button. */
export interface RunningNode extends AsyncDisposable {
  /** Ends the daemon's process and starts it anew. */
  restart(): Promise<void>;
}

/** A control plane, and a node with its daemon. */
export interface DaemonUnderTest extends NodeControlPlane, RunningNode {}

/** `rebootSoftly`: where it can; a soft reboot that is asked of another starts the daemon anew and nothing else. */
type NodeOfTest = NodePorts &
  Pick<TestNode, 'dir' | 'boot'> & { readonly rebootSoftly?: () => Promise<void> };
type Options = Partial<
  Pick<
    DaemonOptions,
    'actionLimitMs' | 'backoff' | 'healthLimits' | 'metrics' | 'ports' | 'postponedMs' | 'softRebootLimitMs'
  >
>;

/** Starts the daemon of a node; the node reboots whenever the daemon asks for it. */
export async function startDaemon(
  node: NodeOfTest,
  options: Options & {
    /** The daemon's own way to the API server. */
    readonly clientOf?: (control: NodeControlPlane) => Promise<ApiClient>;
  } = {},
): Promise<DaemonUnderTest> {
  const log = pino({ level: process.env['SHALE_TEST_LOG'] ?? 'silent' });
  const control = await startNodeControlPlane(log);
  const client = (await options.clientOf?.(control)) ?? control.client;
  const running = runNode(node, { ...options, client, nodeName: NODE, log });
  return {
    ...control,
    restart: running.restart,
    [Symbol.asyncDispose]: async () => {
      await running[Symbol.asyncDispose]();
      await control[Symbol.asyncDispose]();
    },
  };
}

/** As startDaemon, on a control plane that is there. */
export function runNode(
  node: NodeOfTest,
  options: Options & Pick<DaemonOptions, 'client' | 'nodeName' | 'log'>,
): RunningNode {
  const ending = new AbortController();
  const start = () => {
    const stop = new AbortController();
    const ended = runDaemon({
      ports: node,
      actionLimitMs: 10_000,
      healthLimits: { checksMs: 1_000, kubeletMs: 1_000 },
      backoff: { firstMs: 50, longestMs: 500 },
      ...options,
      signal: stop.signal,
    });
    return async () => {
      stop.abort();
      await ended;
    };
  };
  let stop = start();
  const power = (async () => {
    for (;;) {
      const request = await untilRebootRequested(node.dir, ending.signal);
      if (request === undefined) break;
      await stop();
      await (request.softly ? node.rebootSoftly?.() : node.boot());
      if (!ending.signal.aborted) stop = start();
    }
  })();
  return {
    restart: async () => {
      await stop();
      stop = start();
    },
    [Symbol.asyncDispose]: async () => {
      ending.abort();
      await stop();
      await power;
      await stop();
    },
  };
}
