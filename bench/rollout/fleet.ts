import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { DisruptionAction } from '../../api/disruption-action.ts';
import { Namespaces, type Node, Nodes } from '../../api/kubernetes.ts';
import { MachineConfigs } from '../../api/machine-config.ts';
import { MachineConfigNodes } from '../../api/machine-config-node.ts';
import { type MachineConfigPool, MachineConfigPools } from '../../api/machine-config-pool.ts';
import { DEFAULT_LEASE_NAMESPACE, labels } from '../../api/names.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { tokenConnection } from '../../cluster/connection.ts';
import { requeueAfter, runController } from '../../cluster/controller.ts';
import { createApiClient } from '../../cluster/http-api-client.ts';
import { createInformer } from '../../cluster/informer.ts';
import { createLogger } from '../../cluster/process.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import { createWorkQueue } from '../../cluster/work-queue.ts';
import { inParallel } from '../../rollout/in-parallel.ts';
import { stepDaemon } from '../../test/fixtures/fleet/scripted-daemon.ts';
import { startApiServer } from '../../workshop/apiserver/start.ts';
import { applyObjects } from '../../workshop/sandbox/manifests/apply.ts';
import { readKustomization } from '../../workshop/sandbox/manifests/kustomization.ts';

/** A cluster whose nodes are objects alone: each does at once what it is told, but for what takes a node its time. */
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
  rollOut(content: string, actions: readonly DisruptionAction[]): Promise<Course>;
  /** Cordons single nodes, as a person would, and lifts it; each is awaited in its pool's status. @returns how many events. */
  singleEvents(count: number): Promise<number>;
  stop(): Promise<void>;
}

/** How a rollout went. */
interface Course {
  /** From a daemon's word that its node is updated until the operator has taken its leave back, in ms, ascending. */
  readonly decisionMs: readonly number[];
  /** Waves of nodes that were let go on at once, each on the proof of the one before; the most that a pool needed. */
  readonly waves: number;
}

const MANIFESTS = path.join(import.meta.dirname, '../../manifests/base');
const ACCOUNT = { namespace: 'shale-system', name: 'shale-operator' };
const USER = `system:serviceaccount:${ACCOUNT.namespace}:${ACCOUNT.name}`;
const ROLE = 'fleet';
/** Requests of the bench itself at the same time. */
const PARALLEL = 32;
/** Images that a kubelet tells of: the most of what a Node of a real cluster is long for. */
const IMAGES = 30;
/** ms that a live update takes a node: without it nodes would be through before the next has its leave, and no wave be one. */
const LIVE_UPDATE = 1_000;
/** ms without another annotation of a node, after which the operator has no more to say about a rollout. */
const QUIET = 3_000;

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
  let course = createCourse();
  const daemons = runDaemons(client, script, (event) => course.see(event), until);
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

  const awaited = new Set<() => void>();
  poolStates.onChange(() => {
    for (const check of awaited) check();
  });
  /** Resolves when a change of a pool has made it true. */
  const become = async (isDone: () => boolean) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const check = () => isDone() && resolve();
    const end = () => reject(until.reason);
    awaited.add(check);
    until.addEventListener('abort', end, { once: true });
    check();
    await promise.finally(() => {
      awaited.delete(check);
      until.removeEventListener('abort', end);
    });
  };
  /** @param before names of configurations that count for nothing: a pool may not have seen the change yet. */
  const allUpdated = (before: ReadonlySet<string>) =>
    become(
      () => poolStates.list().length === pools && poolStates.list().every((pool) => isUpdated(pool, before)),
    );
  /** Annotations come after the pools' word that they are updated, and are a part of what a rollout costs. */
  const quiet = async () => {
    const told = () => requests.get('patch nodes') ?? 0;
    for (let before = -1; before !== told(); ) {
      before = told();
      await delay(QUIET, undefined, { signal: until });
    }
  };
  return {
    operatorAccess: { url: server.url, caPem: server.caPem, token: server.createToken(ACCOUNT) },
    takeRequests() {
      const taken = requests;
      requests = new Map();
      return taken;
    },
    async begun() {
      await allUpdated(new Set());
      await quiet();
    },
    async rollOut(content, actions) {
      script.actions = actions;
      course = createCourse();
      const before = new Set(poolStates.list().flatMap(({ spec }) => spec.configuration?.name ?? []));
      const next = machineConfig(content);
      const { metadata } = await client.get(MachineConfigs, next.metadata.name, { signal });
      const { resourceVersion = '' } = metadata;
      const replacement = { ...next, metadata: { ...next.metadata, resourceVersion } };
      await client.replace(MachineConfigs, replacement, { signal });
      await allUpdated(before);
      await quiet();
      return course.result();
    },
    async singleEvents(count) {
      const unavailable = (name: string) => poolStates.get(name)?.status?.unavailableMachineCount;
      for (let index = 0; index < count; index += 1) {
        const pool = `pool-${index % pools}`;
        for (const unschedulable of [true, false]) {
          await client.patch(Nodes, `node-${index}`, { type: 'merge', body: { spec: { unschedulable } } });
          await become(() => unavailable(pool) === (unschedulable ? 1 : 0));
        }
      }
      return 2 * count;
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
  see: CourseOfRollout['see'],
  signal: AbortSignal,
): Promise<void> {
  const log = createLogger('bench', 'error');
  const queue = createWorkQueue();
  const begunAt = new Map<string, number>();
  const objects = createInformer(client, MachineConfigNodes, { log });
  objects.onChange(({ object: { metadata, spec } }) => {
    queue.add(metadata.name);
    const isGranted = spec.grant !== undefined;
    see({ kind: isGranted ? 'granted' : 'free', node: metadata.name, pool: spec.pool.name });
  });
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
        if (object === undefined) return { kind: 'done' };
        if (object.spec.grant?.level === 'Live') {
          const begun = begunAt.get(name) ?? performance.now();
          begunAt.set(name, begun);
          const left = begun + LIVE_UPDATE - performance.now();
          if (left > 0) return requeueAfter(left);
        } else begunAt.delete(name);
        const did = await stepDaemon(client, object, {
          planFor: () => script.actions,
          failure: () => undefined,
        });
        if (did === 'applied' || did === 'rebooted')
          see({ kind: 'updated', node: name, pool: object.spec.pool.name });
        return { kind: 'done' };
      },
    }),
  ]);
}

interface CourseOfRollout {
  see(event: {
    readonly kind: 'granted' | 'updated' | 'free';
    readonly node: string;
    readonly pool: string;
  }): void;
  result(): Course;
}

function createCourse(): CourseOfRollout {
  const toldAt = new Map<string, number>();
  const decisionMs: number[] = [];
  const waveOf = new Map<string, number>();
  const provenWave = new Map<string, number>();
  return {
    see({ kind, node, pool }) {
      const told = toldAt.get(node);
      const proven = provenWave.get(pool) ?? 0;
      switch (kind) {
        case 'granted':
          if (!waveOf.has(node)) waveOf.set(node, proven + 1);
          return;
        case 'updated':
          toldAt.set(node, performance.now());
          provenWave.set(pool, Math.max(proven, waveOf.get(node) ?? 0));
          return;
        case 'free':
          if (told !== undefined) decisionMs.push(performance.now() - told);
          toldAt.delete(node);
      }
    },
    result: () => ({
      decisionMs: decisionMs.toSorted((a, b) => a - b),
      waves: Math.max(0, ...provenWave.values()),
    }),
  };
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
  const images = Array.from({ length: IMAGES }, (_, index) => ({
    names: [
      `registry.test/team/${index}@sha256:${String(index).padStart(64, '0')}`,
      `registry.test/team/${index}:1`,
    ],
    sizeBytes: 100_000_000 + index,
  }));
  const status = { conditions: [ready], nodeInfo: { bootID: 'first-boot' }, images } as Node['status'] &
    object;
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
