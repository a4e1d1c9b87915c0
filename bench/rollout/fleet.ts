import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { DisruptionAction } from '../../api/disruption-action.ts';
import { Namespaces, Nodes } from '../../api/kubernetes.ts';
import { type MachineConfigPool, MachineConfigPools } from '../../api/machine-config-pool.ts';
import { DEFAULT_LEASE_NAMESPACE } from '../../api/names.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { tokenConnection } from '../../cluster/connection.ts';
import { createApiClient } from '../../cluster/http-api-client.ts';
import { createInformer, type Informer } from '../../cluster/informer.ts';
import { createLogger } from '../../cluster/process.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import { inParallel } from '../../rollout/in-parallel.ts';
import { LiveFleet } from '../../test/fixtures/fleet/live-fleet.ts';
import { type ApiServer, startApiServer } from '../../workshop/apiserver/start.ts';
import { applyObjects } from '../../workshop/sandbox/manifests/apply.ts';
import { readKustomization } from '../../workshop/sandbox/manifests/kustomization.ts';

const MANIFESTS = path.join(import.meta.dirname, '../../manifests/base');
const ACCOUNT = { namespace: 'shale-system', name: 'shale-operator' };
const USER = `system:serviceaccount:${ACCOUNT.namespace}:${ACCOUNT.name}`;
const ROLE = 'fleet';
/** Requests of the bench itself at the same time. */
const PARALLEL = 32;
/** Images that a kubelet reports: most of the size of a real cluster's Node. */
const IMAGES = Array.from({ length: 30 }, (_, index) => ({
  names: [
    `registry.test/team/${index}@sha256:${String(index).padStart(64, '0')}`,
    `registry.test/team/${index}:1`,
  ],
  sizeBytes: 100_000_000 + index,
}));
/** ms that a live update takes a node: without it nodes would finish before the next has its grant, and no wave be one. */
const LIVE_UPDATE_MS = 1_000;
/** ms without another annotation of a node, after which the operator has no more to say about a rollout. */
const QUIET_MS = 3_000;

/** How a rollout went. */
interface Course {
  /** From a daemon's report that its node is updated until the operator has withdrawn its grant, in ms, ascending. */
  readonly decisionMs: readonly number[];
  /** Waves of nodes that were granted at once, each on the proof of the one before; the most that a pool needed. */
  readonly waves: number;
}

/**
 * @param nodes spread evenly over the pools.
 * @returns a cluster with the manifests, whose nodes and pools are created and wait for an operator.
 */
export async function startFleet(nodes: number, pools: number, signal: AbortSignal): Promise<BenchFleet> {
  const requests = new Map<string, number>();
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
  const fleet = new BenchFleet({ server, client, requests, pools, signal });
  await fleet.create(nodes);
  return fleet;
}

interface FleetParts {
  readonly server: ApiServer;
  readonly client: ApiClient;
  /** The operator's requests so far, watches apart, by verb and resource. */
  readonly requests: Map<string, number>;
  /** How many. */
  readonly pools: number;
  readonly signal: AbortSignal;
}

/** A cluster whose nodes are objects alone: each does at once what its spec asks for, but for what takes a node its time. */
export class BenchFleet {
  readonly #parts: FleetParts;
  readonly #stopping = new AbortController();
  readonly #until: AbortSignal;
  readonly #nodes: LiveFleet;
  readonly #pools: Informer<MachineConfigPool>;
  readonly #running: Promise<unknown>;
  readonly #checks = new Set<() => void>();
  #actions: readonly DisruptionAction[] = [];
  #course = new CourseOfRollout();

  constructor(parts: FleetParts) {
    this.#parts = parts;
    this.#until = AbortSignal.any([parts.signal, this.#stopping.signal]);
    const log = createLogger('bench', 'error');
    this.#nodes = new LiveFleet(parts.client, {
      log,
      workers: PARALLEL,
      scriptOf: () => ({ actions: this.#actions, liveUpdateMs: LIVE_UPDATE_MS }),
      onUpdate: ({ metadata, spec }) => this.#course.updated(metadata.name, spec.pool.name),
    });
    this.#nodes.machineConfigNodes.onChange(({ object: { metadata, spec } }) => {
      if (spec.grant === undefined) this.#course.settled(metadata.name);
      else this.#course.granted(metadata.name, spec.pool.name);
    });
    this.#pools = createInformer(parts.client, MachineConfigPools, { log });
    this.#pools.onChange(() => {
      for (const check of this.#checks) check();
    });
    this.#running = Promise.all([this.#nodes.run(this.#until), this.#pools.start(this.#until)]);
  }

  /** How a process with the operator's rights connects. */
  get operatorAccess(): { readonly url: string; readonly caPem: string; readonly token: string } {
    const { server } = this.#parts;
    return { url: server.url, caPem: server.caPem, token: server.createToken(ACCOUNT) };
  }

  async create(nodes: number): Promise<void> {
    const { pools, signal } = this.#parts;
    await this.#nodes.putConfig(ROLE, '0', signal);
    const names = Array.from({ length: pools }, (_, index) => `pool-${index}`);
    await inParallel(names, PARALLEL, (name) =>
      this.#nodes.createPool(name, { role: ROLE, spec: { maxUnavailable: '10%' } }, signal),
    );
    await inParallel(Array.from({ length: nodes }).keys(), PARALLEL, (index) =>
      this.#nodes.createNode(
        `node-${index}`,
        `pool-${index % pools}`,
        { status: { images: IMAGES } },
        signal,
      ),
    );
  }

  /** @returns the operator's requests since the last call, watches apart, by verb and resource. */
  takeRequests(): ReadonlyMap<string, number> {
    const taken = new Map(this.#parts.requests);
    this.#parts.requests.clear();
    return taken;
  }

  /** Resolves when every pool reports that all of its nodes run its first configuration. */
  async started(): Promise<void> {
    await this.#allUpdated(new Set());
    await this.#quiet();
  }

  /**
   * Changes the one MachineConfig that every pool has. Resolves when every pool reports that all of its nodes run it.
   *
   * @param actions what each node will have to do for it.
   */
  async rollOut(content: string, actions: readonly DisruptionAction[]): Promise<Course> {
    this.#actions = actions;
    this.#course = new CourseOfRollout();
    const before = new Set(this.#pools.list().flatMap(({ spec }) => spec.configuration?.name ?? []));
    await this.#nodes.putConfig(ROLE, content, this.#parts.signal);
    await this.#allUpdated(before);
    await this.#quiet();
    return this.#course.result();
  }

  /** Cordons single nodes, as a person would, and uncordons them; each is awaited in its pool's status. @returns how many events. */
  async singleEvents(count: number): Promise<number> {
    const { client, pools } = this.#parts;
    for (let index = 0; index < count; index += 1) {
      const pool = `pool-${index % pools}`;
      for (const unschedulable of [true, false]) {
        await client.patch(Nodes, `node-${index}`, { type: 'merge', body: { spec: { unschedulable } } });
        const expected = unschedulable ? 1 : 0;
        await this.#become(() => this.#pools.get(pool)?.status?.unavailableMachineCount === expected);
      }
    }
    return 2 * count;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await this.#parts.server.stop();
  }

  /** Resolves when a change of a pool has made it true. */
  async #become(isDone: () => boolean): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const check = () => isDone() && resolve();
    const end = () => reject(this.#until.reason);
    this.#checks.add(check);
    this.#until.addEventListener('abort', end, { once: true });
    check();
    await promise.finally(() => {
      this.#checks.delete(check);
      this.#until.removeEventListener('abort', end);
    });
  }

  /** @param before names of configurations that don't count: a pool may not have seen the change yet. */
  #allUpdated(before: ReadonlySet<string>): Promise<void> {
    return this.#become(() => {
      const pools = this.#pools.list();
      return pools.length === this.#parts.pools && pools.every((pool) => isUpdated(pool, before));
    });
  }

  /** Annotations come after the pools' report that they are updated, and are a part of what a rollout costs. */
  async #quiet(): Promise<void> {
    const patches = () => this.#parts.requests.get('patch nodes') ?? 0;
    for (let before = -1; before !== patches(); ) {
      before = patches();
      await delay(QUIET_MS, undefined, { signal: this.#until });
    }
  }
}

function isUpdated({ spec, status }: MachineConfigPool, before: ReadonlySet<string>): boolean {
  const { name } = spec.configuration ?? {};
  const isNew = name !== undefined && !before.has(name) && status?.configuration?.name === name;
  const all = status?.machineCount === status?.updatedMachineCount && status?.machineCount !== 0;
  return isNew && all && conditionIsTrue(status?.conditions, 'Updated');
}

class CourseOfRollout {
  readonly #updatedAt = new Map<string, number>();
  readonly #decisionMs: number[] = [];
  readonly #waveOf = new Map<string, number>();
  readonly #provenWave = new Map<string, number>();

  granted(node: string, pool: string): void {
    if (!this.#waveOf.has(node)) this.#waveOf.set(node, (this.#provenWave.get(pool) ?? 0) + 1);
  }

  updated(node: string, pool: string): void {
    this.#updatedAt.set(node, performance.now());
    const proven = this.#provenWave.get(pool) ?? 0;
    this.#provenWave.set(pool, Math.max(proven, this.#waveOf.get(node) ?? 0));
  }

  /** The node has no grant, or no more. */
  settled(node: string): void {
    const since = this.#updatedAt.get(node);
    if (since !== undefined) this.#decisionMs.push(performance.now() - since);
    this.#updatedAt.delete(node);
  }

  result(): Course {
    return {
      decisionMs: this.#decisionMs.toSorted((a, b) => a - b),
      waves: Math.max(0, ...this.#provenWave.values()),
    };
  }
}
