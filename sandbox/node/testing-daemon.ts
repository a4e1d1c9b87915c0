import { watch } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import pino from 'pino';
import { crdOf } from '../../api/crd.ts';
import { crdDefinitions } from '../../api/crd-definitions.ts';
import { Leases, Namespaces } from '../../api/kubernetes.ts';
import {
  type MachineConfigNode,
  type MachineConfigNodeSpec,
  MachineConfigNodes,
} from '../../api/machine-config-node.ts';
import { DEFAULT_LEASE_NAMESPACE, DEFAULT_NAMESPACE } from '../../api/names.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { tokenConnection } from '../../cluster/connection.ts';
import { createApiClient } from '../../cluster/http-api-client.ts';
import { createInformer } from '../../cluster/informer.ts';
import { directoryNodeLayout } from '../../daemon/host/directory-host.ts';
import { type DaemonOptions, runDaemon } from '../../daemon/run.ts';
import { startApiServer } from '../apiserver/start.ts';
import { applyObjects } from '../manifests/apply.ts';
import { createChanges, waitUntil } from '../wait-until.ts';
import type { TestNode } from './testing.ts';

export const NODE = 'node-0';
export const HOLDER = 'shale-operator';

/** A control plane, the daemon of one directory node, and the node's power button. */
export interface DaemonUnderTest extends AsyncDisposable {
  readonly client: ApiClient;
  /** Makes the MachineConfigNode, or sets its spec. */
  want(spec: Partial<MachineConfigNodeSpec>): Promise<void>;
  /** @returns the object once it is as asked. */
  until(what: string, holds: (object: MachineConfigNode) => boolean): Promise<MachineConfigNode>;
  /** Ends the daemon's process and starts it anew. */
  restart(): Promise<void>;
}

const DEADLINE_MS = 60_000;
const META = { apiVersion: 'machineconfiguration.openshift.io/v1', kind: 'MachineConfigNode' } as const;
const metadata = { name: NODE };

/** Starts the daemon of a node; the node reboots whenever the daemon asks for it. */
export async function startDaemon(
  node: TestNode,
  options: Partial<Pick<DaemonOptions, 'actionLimitMs' | 'healthLimits' | 'ports'>> = {},
): Promise<DaemonUnderTest> {
  const log = pino({ level: process.env['SHALE_TEST_LOG'] ?? 'silent' });
  const ending = new AbortController();
  const server = await startApiServer();
  const client = createApiClient(tokenConnection(server.url, server.adminToken, server.caPem));
  await applyObjects(client, crdDefinitions.map(crdOf), { log, signal: ending.signal });
  for (const name of [DEFAULT_NAMESPACE, DEFAULT_LEASE_NAMESPACE]) {
    await client.create(Namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  }
  await client.create(
    Leases,
    {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: `node-${NODE}`, namespace: DEFAULT_LEASE_NAMESPACE },
      spec: { holderIdentity: HOLDER },
    },
    { namespace: DEFAULT_LEASE_NAMESPACE },
  );
  const changes = createChanges();
  const informer = createInformer(client, MachineConfigNodes, { log });
  informer.onChange(() => changes.notify());
  const watching = informer.start(ending.signal);

  let process_: { readonly stop: AbortController; readonly ended: Promise<void> } | undefined;
  const start = () => {
    const stop = new AbortController();
    const ended = runDaemon({
      ports: options.ports ?? node,
      client,
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
      if (!ending.signal.aborted) start();
    });
  });
  start();
  return {
    client,
    want: async (wanted) => {
      const found = await client.find(MachineConfigNodes, NODE);
      const defaults = { node: { name: NODE }, pool: { name: 'worker' }, configVersion: { desired: '' } };
      const spec = { ...defaults, ...wanted };
      if (found === undefined) await client.create(MachineConfigNodes, { ...META, metadata, spec });
      else
        await client.patch(MachineConfigNodes, NODE, {
          type: 'json',
          body: [{ op: 'replace', path: '/spec', value: spec }],
        });
    },
    until: (what, holds) =>
      waitUntil({
        what,
        changes,
        look: () => {
          const object = informer.get(NODE);
          return object !== undefined && holds(object)
            ? { met: object }
            : { seen: JSON.stringify(object?.status ?? null) };
        },
        deadlineMs: DEADLINE_MS,
        signal: ending.signal,
      }),
    restart: async () => {
      await stop();
      start();
    },
    [Symbol.asyncDispose]: async () => {
      watcher.close();
      await stop();
      await power;
      await stop();
      ending.abort();
      await watching;
      await server.stop();
    },
  };
}
