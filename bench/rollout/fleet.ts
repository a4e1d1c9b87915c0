import path from 'node:path';
import type { DisruptionAction } from '../../api/disruption-action.ts';
import { Namespaces, type Node, Nodes } from '../../api/kubernetes.ts';
import { MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { type MachineConfigPool, MachineConfigPools } from '../../api/machine-config-pool.ts';
import { DEFAULT_LEASE_NAMESPACE, labels } from '../../api/names.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { conditionIsTrue } from '../../cluster/conditions.ts';
import { tokenConnection } from '../../cluster/connection.ts';
import { runController } from '../../cluster/controller.ts';
import { createApiClient } from '../../cluster/http-api-client.ts';
import { createInformer } from '../../cluster/informer.ts';
import { createLogger } from '../../cluster/log.ts';
import { createWorkQueue } from '../../cluster/work-queue.ts';
import { inParallel } from '../../rollout/in-parallel.ts';
import { stepDaemon } from '../../rollout/testing/scripted-daemon.ts';
import { startApiServer } from '../../sandbox/apiserver/start.ts';
import { applyObjects } from '../../sandbox/manifests/apply.ts';
import { readKustomization } from '../../sandbox/manifests/kustomization.ts';

/** A cluster whose nodes are objects alone: each does at once what it is told. */
export interface Fleet {
  /** How a process with the operator's rights comes in. */
  readonly operatorAccess: { readonly url: string; readonly caPem: string; readonly token: string };
  /** The operator's requests since the last call, watches apart, by verb and resource. */
  takeRequests(): ReadonlyMap<string, number>;
  /** Resolves when every pool says that all of its nodes run its first configuration. */
  begun(): Promise<void>;
  /**
   * Changes the one MachineConfig that every pool has. Resolves when every pool says that all of its nodes run it.
   *
   * @param actions what each node will have to do for it.
   */
  rollOut(content: string, actions: readonly DisruptionAction[]): Promise<void>;
  stop(): Promise<void>;
}

const MANIFESTS = path.join(import.meta.dirname, '../../manifests/base');
const ACCOUNT = { namespace: 'shale-system', name: 'shale-operator' };
const USER = `system:serviceaccount:${ACCOUNT.namespace}:${ACCOUNT.name}`;
const ROLE = 'fleet';
/** Requests of the bench itself at the same time. */
const PARALLEL = 32;

/** @param nodes spread evenly over the pools. */
export async function startFleet(nodes: number, pools: number, signal: AbortSignal): Promise<Fleet> {
  let requests = new Map<string, number>();
  const server = await startApiServer({
    onRequest({ user, verb, resource, subresource }) {
      if (user !== USER || verb === 'watch') return;
      const key = `${verb} ${resource}${subresource === '' ? '' : `/${subresource}`}`;
      requests.set(key, (requests.get(key) ?? 0) + 1);
    },
  });
  const client = createApiClient(tokenConnection(server.url, server.adminToken, server.caPem));
  const log = createLogger('bench', 'error');
  await applyObjects(client, await readKustomization(MANIFESTS), { log, signal });
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: DEFAULT_LEASE_NAMESPACE } };
  if ((await client.find(Namespaces, DEFAULT_LEASE_NAMESPACE, { signal })) === undefined)
    await client.create(Namespaces, namespace, { signal });

  const stop = new AbortController();
  const until = AbortSignal.any([signal, stop.signal]);
  const script: { actions: readonly DisruptionAction[] } = { actions: [] };
  const daemons = runDaemons(client, script, until);
  const poolStates = createInformer(client, MachineConfigPools, { log });
  const watching = poolStates.start(until);

  await client.create(MachineConfigs, machineConfig('0'), { signal });
  const names = Array.from({ length: pools }, (_, index) => `pool-${index}`);
  await inParallel(names, PARALLEL, async (name) => {
    const spec = {
      machineConfigSelector: { matchLabels: { [labels.role]: ROLE } },
      nodeSelector: { matchLabels: { pool: name } },
      maxUnavailable: '10%',
    };
    const kind = { apiVersion: 'machineconfiguration.openshift.io/v1', kind: 'MachineConfigPool' };
    await client.create(MachineConfigPools, { ...kind, metadata: { name }, spec }, { signal });
  });
  await inParallel(Array.from({ length: nodes }).keys(), PARALLEL, async (index) => {
    await createNode(client, `node-${index}`, `pool-${index % pools}`, signal);
  });

  /** @param before names of configurations that count for nothing: a pool may not have seen the change yet. */
  const allUpdated = async (before: ReadonlySet<string>) => {
    const isDone = () =>
      poolStates.list().length === pools && poolStates.list().every((pool) => isUpdated(pool, before));
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    poolStates.onChange(() => isDone() && resolve());
    until.addEventListener('abort', () => reject(until.reason), { once: true });
    if (isDone()) resolve();
    await promise;
  };
  return {
    operatorAccess: { url: server.url, caPem: server.caPem, token: server.createToken(ACCOUNT) },
    takeRequests() {
      const taken = requests;
      requests = new Map();
      return taken;
    },
    begun: () => allUpdated(new Set()),
    async rollOut(content, actions) {
      script.actions = actions;
      const before = new Set(poolStates.list().flatMap(({ spec }) => spec.configuration?.name ?? []));
      const next = machineConfig(content);
      const { metadata } = await client.get(MachineConfigs, next.metadata.name, { signal });
      const { resourceVersion = '' } = metadata;
      const replacement = { ...next, metadata: { ...next.metadata, resourceVersion } };
      await client.replace(MachineConfigs, replacement, { signal });
      await allUpdated(before);
    },
    async stop() {
      stop.abort();
      await Promise.all([daemons, watching]);
      await server.stop();
    },
  };
}

function isUpdated({ spec, status }: MachineConfigPool, before: ReadonlySet<string>): boolean {
  const { name } = spec.configuration ?? {};
  const isNew = name !== undefined && !before.has(name) && status?.configuration?.name === name;
  const all = status?.machineCount === status?.updatedMachineCount && status?.machineCount !== 0;
  return isNew && all && conditionIsTrue(status?.conditions, 'Updated');
}

/** One watch for all of them: thousands would measure the server. */
async function runDaemons(
  client: ApiClient,
  script: { readonly actions: readonly DisruptionAction[] },
  signal: AbortSignal,
): Promise<void> {
  const log = createLogger('bench', 'error');
  const queue = createWorkQueue();
  const objects = createInformer(client, MachineConfigNodes, { log });
  objects.onChange(({ object }) => queue.add(object.metadata.name));
  await Promise.all([
    objects.start(signal),
    runController({
      name: 'daemons',
      queue,
      workers: PARALLEL,
      log,
      signal,
      async reconcile(name) {
        const object = objects.get(name);
        if (object !== undefined)
          await stepDaemon(client, object, { planFor: () => script.actions, failure: () => undefined });
        return { kind: 'done' };
      },
    }),
  ]);
}

async function createNode(client: ApiClient, name: string, pool: string, signal: AbortSignal): Promise<void> {
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name, labels: { pool } } };
  const created = await client.create(Nodes, node, { signal });
  const ready = {
    type: 'Ready',
    status: 'True' as const,
    reason: 'KubeletReady',
    message: '',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  };
  const status: Node['status'] = { conditions: [ready], nodeInfo: { bootID: 'first-boot' } };
  await client.replaceStatus(Nodes, { ...created, status }, { signal });
}

function machineConfig(content: string) {
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name: '50-fleet', labels: { [labels.role]: ROLE } },
    spec: {
      config: {
        ignition: { version: '3.4.0' },
        storage: { files: [{ path: '/etc/fleet', contents: { source: `data:,${content}` } }] },
      },
    },
  };
}
