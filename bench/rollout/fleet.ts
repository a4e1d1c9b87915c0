import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { DisruptionAction } from '../../api/disruption-action.ts';
import { Namespaces, Nodes } from '../../api/kubernetes.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import { type MachineConfigPool, MachineConfigPools } from '../../api/machine-config-pool.ts';
import { DEFAULT_LEASE_NAMESPACE } from '../../api/names.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { tokenConnection } from '../../cluster/connection.ts';
import { createApiClient } from '../../cluster/http-api-client.ts';
import { createInformer, type Informer } from '../../cluster/informer.ts';
import { createLogger } from '../../cluster/log.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import { inParallel } from '../../rollout/in-parallel.ts';
import { LiveFleet } from '../../test/fixtures/fleet/live-fleet.ts';
import { apiStatus, type Fate, type Front, startFront } from '../../test/soak/world/front.ts';
import { Random } from '../../test/soak/world/random.ts';
import type { ControlPlane } from '../../workshop/apiserver/control-plane/control-plane.ts';
import { startControlPlane } from '../../workshop/apiserver/control-plane/start.ts';
import { applyObjects } from '../../workshop/sandbox/manifests/apply.ts';
import { readKustomization } from '../../workshop/sandbox/manifests/kustomization.ts';
import type { Progress } from './progress.ts';

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
/**
 * ms that a live update takes a node: without it nodes would finish before the next has its grant, and no wave be one.
 */
const LIVE_UPDATE_MS = 1_000;
/** ms without another annotation of a node, after which the operator has no more to say about a rollout. */
const QUIET_MS = 3_000;

/** ms between the ends of all of the operator's watches, with faults. */
const WATCHES_END_MS = 10_000;
/** Of a hundred requests of the operator, with faults, so many meet this. */
const FAULTS: readonly (readonly [percent: number, fate: Fate])[] = [
  [1, { kind: 'status', code: 503 }],
  [1, { kind: 'unanswered' }],
  [1, { kind: 'cut' }],
];

export interface FleetOptions {
  /** Spread evenly over the pools. */
  readonly nodes: number;
  readonly pools: number;
  /** Directory with kube-apiserver and etcd; absent: the embedded API server. */
  readonly assets: string | undefined;
  /** Some of the operator's requests fail, and its watches end again and again. */
  readonly faults: boolean;
}

/** A new content of every pool's MachineConfig. */
export interface Update {
  readonly name: string;
  readonly content: string;
  /** What each node will have to do for it. */
  readonly actions: readonly DisruptionAction[];
}

/** How a rollout went. */
interface Course {
  /** From a daemon's report that its node is updated until the operator has withdrawn its grant, in ms, ascending. */
  readonly decisionMs: readonly number[];
  /** Waves of nodes that were granted at once, each on the proof of the one before; the most that a pool needed. */
  readonly waves: number;
}

/** @returns a cluster with the manifests, whose nodes and pools are still to be created. */
export async function startFleet(options: FleetOptions, signal: AbortSignal): Promise<BenchFleet> {
  const { assets, faults } = options;
  const requests = new Map<string, number>();
  const count = (key: string) => requests.set(key, (requests.get(key) ?? 0) + 1);
  const controlPlane = await startControlPlane(
    {
      assets,
      onRequest({ user, verb, resource, subresource }) {
        if (faults || user !== USER || verb === 'watch') return;
        count(`${verb} ${resource}${subresource === '' ? '' : `/${subresource}`}`);
      },
    },
    signal,
  );
  const { url, token, caPem } = controlPlane.access;
  const client = createApiClient(tokenConnection(url, token, caPem));
  const log = createLogger('bench', 'error');
  await applyObjects(client, await readKustomization(MANIFESTS), { log, signal });
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: DEFAULT_LEASE_NAMESPACE } };
  if ((await client.find(Namespaces, DEFAULT_LEASE_NAMESPACE, { signal })) === undefined)
    await client.create(Namespaces, namespace, { signal });
  // The operator alone comes through it.
  const isCountedThere = faults || assets !== undefined;
  const front = isCountedThere ? await startOperatorsFront(controlPlane, faults, count) : undefined;
  return new BenchFleet({ ...options, controlPlane, front, client, requests, signal });
}

/** A front that counts, and where asked makes trouble by a seed of its own, so that two runs meet the same. */
async function startOperatorsFront(
  { apiServer }: ControlPlane,
  faults: boolean,
  count: (key: string) => void,
): Promise<Front> {
  const front = await startFront('bench', { ...apiServer, statusBody: apiStatus });
  const chance = new Random(1);
  front.decide(({ method, url }) => {
    const key = requestKey(method, url);
    if (key !== undefined) count(key);
    if (!faults) return { kind: 'forward' };
    let left = 100 * chance.next();
    for (const [percent, fate] of FAULTS) {
      if (left < percent) return fate;
      left -= percent;
    }
    return { kind: 'forward' };
  });
  return front;
}

const VERBS: Readonly<Record<string, string>> = {
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
};

/** @returns verb and resource, as an API server's audit log names them; undefined for a watch. */
function requestKey(method: string, url: string): string | undefined {
  const { pathname, searchParams } = new URL(url, 'https://here');
  if (searchParams.get('watch') === 'true' || searchParams.get('watch') === '1') return undefined;
  const [, rest = ''] =
    /^\/(?:api\/v1|apis\/[^/]+\/[^/]+)\/(?:namespaces\/[^/]+\/)?(.*)$/.exec(pathname) ?? [];
  const [resource = '', name, ...subresource] = rest.split('/');
  const verb = VERBS[method] ?? (name === undefined ? 'list' : 'get');
  return `${verb} ${[resource, ...subresource].join('/')}`;
}

interface FleetParts extends FleetOptions {
  readonly controlPlane: ControlPlane;
  /** What the operator's requests pass; absent: nothing. */
  readonly front: Front | undefined;
  readonly client: ApiClient;
  /** The operator's requests so far, watches apart, by verb and resource. */
  readonly requests: Map<string, number>;
  readonly signal: AbortSignal;
}

export type OperatorAccess = Readonly<Record<'url' | 'caPem' | 'token', string>>;

/**
 * A cluster whose nodes are objects alone: each does at once what its spec asks for, but for what takes a node its
 * time.
 */
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
  #created = 0;
  /** Absent: the first configuration. */
  #update: string | undefined;

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

  get controlPlane(): ControlPlane {
    return this.#parts.controlPlane;
  }

  /** @returns how a process with the operator's rights connects. */
  async operatorAccess(): Promise<OperatorAccess> {
    const { controlPlane, front } = this.#parts;
    const { host, port, caPem } = front ?? controlPlane.apiServer;
    return { url: `https://${host}:${port}`, caPem, token: await controlPlane.createToken(ACCOUNT) };
  }

  /** Creates pools and nodes, which then wait for an operator. */
  async create(): Promise<void> {
    const { nodes, pools, signal } = this.#parts;
    await this.#nodes.putConfig(ROLE, '0', signal);
    const names = Array.from({ length: pools }, (_, index) => `pool-${index}`);
    await inParallel(names, PARALLEL, (name) =>
      this.#nodes.createPool(name, { role: ROLE, spec: { maxUnavailable: '10%' } }, signal),
    );
    await inParallel(Array.from({ length: nodes }).keys(), PARALLEL, async (index) => {
      const pool = `pool-${index % pools}`;
      await this.#nodes.createNode(`node-${index}`, pool, { status: { images: IMAGES } }, signal);
      this.#created += 1;
    });
  }

  /** @returns how far it is with what it is asked to do. */
  progress(): Progress {
    const { nodes: of } = this.#parts;
    if (this.#created < of) return { doing: 'creating', done: this.#created, of };
    if (this.#update !== undefined) return { doing: this.#update, done: this.#course.updatedNodes, of };
    const done = this.#nodes.machineConfigNodes.list().filter(runsItsTarget).length;
    return { doing: 'first configuration', done, of };
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
   * @param update in words, with the content and what each node will have to do for it.
   * @param inTheMiddle called when half of the nodes are updated.
   */
  async rollOut({ name, content, actions }: Update, inTheMiddle?: () => Promise<void>): Promise<Course> {
    const { faults, front, signal } = this.#parts;
    this.#update = name;
    this.#actions = actions;
    const course = new CourseOfRollout();
    this.#course = course;
    const before = new Set(this.#pools.list().flatMap(({ spec }) => spec.configuration?.name ?? []));
    const ending = faults && setInterval(() => front?.endWatches(), WATCHES_END_MS);
    await this.#nodes.putConfig(ROLE, content, signal);
    const half = this.#nodes.machineConfigNodes.size() / 2;
    const interrupted = inTheMiddle && course.reached(half).then(() => course.interrupt(inTheMiddle));
    await Promise.all([this.#allUpdated(before), interrupted]);
    await this.#quiet();
    if (ending !== false) clearInterval(ending);
    return course.result();
  }

  /**
   * Cordons single nodes, as a person would, and uncordons them; each is awaited in its pool's status. @returns how
   * many events.
   */
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
    await this.#parts.front?.stop();
    await this.#parts.controlPlane.stop();
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

function runsItsTarget({ spec, status }: MachineConfigNode): boolean {
  return status?.configVersion?.current === spec.configVersion.desired && spec.grant === undefined;
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
  readonly #updated = new Set<string>();
  #awaited: { readonly nodes: number; readonly resolve: () => void } | undefined;
  #resumesAfter = Number.NEGATIVE_INFINITY;

  get updatedNodes(): number {
    return this.#updated.size;
  }

  /** Resolves when so many nodes are updated. */
  reached(nodes: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#awaited = { nodes, resolve };
    return promise;
  }

  /** What waits for a decision meanwhile is not counted, until the first one after it. */
  async interrupt(meanwhile: () => Promise<void>): Promise<void> {
    this.#resumesAfter = Number.POSITIVE_INFINITY;
    await meanwhile();
    this.#interruptedAt = performance.now();
  }

  #interruptedAt = Number.POSITIVE_INFINITY;

  granted(node: string, pool: string): void {
    if (!this.#waveOf.has(node)) this.#waveOf.set(node, (this.#provenWave.get(pool) ?? 0) + 1);
  }

  updated(node: string, pool: string): void {
    this.#updatedAt.set(node, performance.now());
    this.#updated.add(node);
    if (this.#awaited !== undefined && this.#updated.size >= this.#awaited.nodes) this.#awaited.resolve();
    const proven = this.#provenWave.get(pool) ?? 0;
    this.#provenWave.set(pool, Math.max(proven, this.#waveOf.get(node) ?? 0));
  }

  /** The node has no grant, or no more. */
  settled(node: string): void {
    const since = this.#updatedAt.get(node);
    const now = performance.now();
    if (since !== undefined && now > this.#interruptedAt) {
      this.#resumesAfter = now;
      this.#interruptedAt = Number.POSITIVE_INFINITY;
    }
    if (since !== undefined && since > this.#resumesAfter) this.#decisionMs.push(now - since);
    this.#updatedAt.delete(node);
  }

  result(): Course {
    return {
      decisionMs: this.#decisionMs.toSorted((a, b) => a - b),
      waves: Math.max(0, ...this.#provenWave.values()),
    };
  }
}
