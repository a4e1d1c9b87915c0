import { type DisruptionAction, isDisruptive } from '../../api/disruption-action.ts';
import { type Lease, Leases, type Node, Nodes } from '../../api/kubernetes.ts';
import { MachineConfigs } from '../../api/machine-config.ts';
import { type MachineConfigNode, MachineConfigNodes } from '../../api/machine-config-node.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { annotations, DEFAULT_LEASE_NAMESPACE } from '../../api/names.ts';
import { leaseNameOf } from '../node-leases.ts';
import { defaultRolloutOptions } from '../options.ts';
import { DepartedNodes } from '../pools/departed-nodes.ts';
import { Killed, MemoryCluster, type Trouble } from './memory-cluster.ts';
import { aNode, aPool, aRenderedConfig, condition } from './objects.ts';
import { steppedOperator } from './stepped-operator.ts';

export const HAPPENINGS = [
  'daemon',
  'daemon-fails',
  'steal-lease',
  'return-lease',
  'expire-lease',
  'not-ready',
  'ready',
  'switch-off',
  'switch-on',
  'delete-node',
  'leave-pool',
  'flag',
  'unflag',
  'pause',
  'unpause',
  'new-target',
  'watch-lags',
  'conflict',
  'unavailable',
  'kill-operator',
] as const;

/** What befalls the cluster before the operator looks again; `after`: writes of the operator that trouble waits for. */
export interface Happening {
  readonly what: (typeof HAPPENINGS)[number];
  readonly node: number;
  readonly after: number;
}

export interface Weather {
  readonly nodes: number;
  readonly maxUnavailable: number;
  readonly plans: readonly (readonly DisruptionAction[])[];
  readonly happenings: readonly Happening[];
}

const WORKER = 'node-role.kubernetes.io/worker';
const OPTIONS = defaultRolloutOptions;
const US = OPTIONS.leaseHolder;
/** Enough for eight nodes to go one after another: each takes a handful of looks. */
const CALM_LOOKS = 150;
const signal = new AbortController().signal;

/** A pool and its nodes, the real controllers over objects in memory, and everything that may go wrong. */
export class RolloutWorld {
  readonly violations: string[] = [];
  readonly #cluster = new MemoryCluster();
  readonly #weather: Weather;
  #operator: ReturnType<typeof startOperator>;
  #target = 0;
  #lags = false;
  #taken = new Set<string>();
  /** ms that went by in which nobody renewed. */
  #waited = 0;
  readonly #monotonic = () => performance.now() + this.#waited;

  constructor(weather: Weather) {
    this.#weather = weather;
    const cluster = this.#cluster;
    cluster.put(
      MachineConfigPools,
      aPool('worker', {
        maxUnavailable: weather.maxUnavailable,
        nodeSelector: { matchLabels: { [WORKER]: '' } },
      }),
    );
    this.#newTarget();
    for (let index = 0; index < weather.nodes; index += 1) {
      const name = `node-${index}`;
      cluster.put(Nodes, aNode(name, { metadata: { name, uid: `uid-${name}`, labels: { [WORKER]: '' } } }));
    }
    this.#operator = startOperator(cluster, this.#monotonic);
    cluster.onWrite = () => this.#check();
  }

  /** One thing happens, and the operator looks at what is. */
  async happen(happening: Happening): Promise<void> {
    const { what, node, after } = happening;
    const name = `node-${node % this.#weather.nodes}`;
    switch (what) {
      case 'watch-lags':
        this.#lags = true;
        break;
      case 'conflict':
      case 'unavailable':
        this.#cluster.trouble = once(what, after);
        break;
      case 'kill-operator':
        this.#cluster.trouble = once('killed', after);
        break;
      case 'new-target':
        this.#newTarget();
        break;
      case 'pause':
      case 'unpause':
        this.#pause(what === 'pause');
        break;
      default:
        this.#befall(name, what);
    }
    await this.#look();
    this.#cluster.trouble = () => 'none';
    this.#lags = false;
  }

  /** Everything that was wrong is put right, and the rollout goes to its end. @returns what it left behind. */
  async calm(): Promise<readonly string[]> {
    this.#pause(false);
    this.#newTarget();
    for (const { metadata } of this.#cluster.list(Nodes)) {
      for (const what of ['return-lease', 'ready', 'switch-on', 'unflag'] as const)
        this.#befall(metadata.name, what);
    }
    for (let look = 0; look < CALM_LOOKS; look += 1) {
      for (const { metadata } of this.#cluster.list(Nodes)) this.#befall(metadata.name, 'daemon');
      await this.#look();
    }
    return this.#leftBehind();
  }

  async #look(): Promise<void> {
    if (!this.#lags) this.#operator.catchUp();
    try {
      await this.#operator.look();
    } catch (error) {
      if (error instanceof Killed || (error instanceof AggregateError && error.errors.some(isKilled)))
        this.#operator = startOperator(this.#cluster, this.#monotonic);
    }
  }

  #newTarget(): void {
    this.#target += 1;
    const name = `rendered-worker-${this.#target}`;
    this.#cluster.put(MachineConfigs, aRenderedConfig(name));
    this.#changePool({ configuration: { name } });
  }

  #pause(paused: boolean): void {
    this.#changePool({ paused });
  }

  #changePool(change: object): void {
    const pool = this.#cluster.get(MachineConfigPools, 'worker');
    if (pool !== undefined)
      this.#cluster.put(MachineConfigPools, { ...pool, spec: { ...pool.spec, ...change } });
  }

  #befall(name: string, what: Happening['what']): void {
    const node = this.#cluster.get(Nodes, name);
    const lease = this.#cluster.get(Leases, leaseNameOf(name));
    if (node === undefined) return;
    switch (what) {
      case 'daemon':
      case 'daemon-fails':
        this.#runDaemon(name, what === 'daemon-fails');
        return;
      case 'steal-lease':
        this.#cluster.put(Leases, leaseOf(name, 'thief', Date.now()));
        return;
      case 'return-lease':
        if (lease?.spec?.holderIdentity === 'thief') this.#cluster.remove(Leases, leaseNameOf(name));
        return;
      case 'expire-lease':
        if (lease !== undefined)
          this.#cluster.put(Leases, leaseOf(name, lease.spec?.holderIdentity ?? '', 0));
        this.#operator.catchUp();
        this.#waited += (lease?.spec?.leaseDurationSeconds ?? 0) * 1000;
        return;
      case 'not-ready':
      case 'ready':
        this.#cluster.put(Nodes, {
          ...node,
          status: { conditions: [condition('Ready', what === 'ready' ? 'True' : 'False')] },
        });
        return;
      case 'switch-off':
        this.#cluster.put(Nodes, {
          ...annotated(node, annotations.poweredOff, '{}'),
          status: { conditions: [condition('Ready', 'False')] },
        });
        return;
      case 'switch-on':
        this.#cluster.put(Nodes, annotated(node, annotations.poweredOff, undefined));
        return;
      case 'flag':
      case 'unflag':
        this.#cluster.put(
          Nodes,
          annotated(node, annotations.plannedMaintenance, what === 'flag' ? '{}' : undefined),
        );
        return;
      case 'delete-node':
        this.#cluster.remove(Nodes, name);
        this.#cluster.remove(MachineConfigNodes, name);
        return;
      case 'leave-pool': {
        const { labels: _none, ...metadata } = node.metadata;
        this.#cluster.put(Nodes, { ...node, metadata });
      }
    }
  }

  /** Stages without asking; acts under a sufficient grant for its target while the lease is the operator's. */
  #runDaemon(name: string, fails: boolean): void {
    const object = this.#cluster.get(MachineConfigNodes, name);
    const node = this.#cluster.get(Nodes, name);
    if (object === undefined || !isUp(node)) return;
    const { configVersion, grant } = object.spec;
    const config = configVersion.desired;
    const { status = {} } = object;
    if (status.configVersion?.current === config) return;
    const actions = this.#planOf(name);
    // A daemon leaves alone what it doesn't speak of itself.
    const others = (status.conditions ?? []).filter(({ type }) => type === 'Cordoned' || type === 'Drained');
    const say = (next: MachineConfigNode['status']) =>
      this.#cluster.put(MachineConfigNodes, { ...object, status: { ...status, ...next } });
    if (status.plan?.config !== config) {
      const plan = { config, staged: true, actions: [...actions], causes: [], source: 'model' };
      say({
        plan,
        conditions: [condition('Updated', 'False'), condition('NodeDegraded', 'False'), ...others],
      });
      return;
    }
    const holder = this.#cluster.get(Leases, leaseNameOf(name))?.spec?.holderIdentity;
    const mayAct = grant?.config === config && (grant.level === 'Disrupt' || !isDisruptive(actions));
    if (!mayAct || holder !== US) return;
    if (fails) {
      say({ conditions: [condition('NodeDegraded', 'True', 'it broke'), ...others] });
      return;
    }
    if (isDisruptive(actions) && node?.spec?.unschedulable !== true)
      this.violations.push(`${name} was disrupted and not cordoned`);
    const { plan: _done, ...kept } = status;
    this.#cluster.put(MachineConfigNodes, {
      ...object,
      status: {
        ...kept,
        mode: 'Standard',
        configVersion: { current: config, desired: config },
        conditions: [condition('Updated'), condition('NodeDegraded', 'False'), ...others],
      },
    });
  }

  #planOf(name: string): readonly DisruptionAction[] {
    return this.#weather.plans[Number(name.slice('node-'.length))] ?? [{ type: 'Reboot' }];
  }

  /** What must hold after every single write. */
  #check(): void {
    const inPool = this.#cluster
      .list(Nodes)
      .filter(({ metadata }) => metadata.labels?.[WORKER] !== undefined)
      .filter(({ metadata }) => metadata.annotations?.[annotations.poweredOff] === undefined);
    const ours = inPool.filter(({ metadata }) => metadata.annotations?.[annotations.cordonedByShale]);
    const granted = inPool.filter(
      ({ metadata }) => this.#cluster.get(MachineConfigNodes, metadata.name)?.spec.grant?.level === 'Disrupt',
    );
    const disrupted = new Set([...ours, ...granted].map(({ metadata }) => metadata.name));
    // One that was switched off under a stolen lease comes back as it was left: nothing began then.
    const isMore = [...disrupted].some((name) => !this.#taken.has(name));
    if (isMore && disrupted.size > this.#weather.maxUnavailable)
      this.violations.push(`${disrupted.size} nodes disrupted, ${this.#weather.maxUnavailable} allowed`);
    this.#checkTaken(inPool, ours);
  }

  /** Nodes that are down or cordoned by others count when one more is taken; what the watch hides can't. */
  #checkTaken(inPool: readonly Node[], ours: readonly Node[]): void {
    const taken = ours.filter((node) => !this.#taken.has(node.metadata.name) && isUp(node));
    // Marks stay on a node that is switched off while its lease is another's.
    const touched = this.#cluster
      .list(Nodes)
      .filter(
        ({ metadata }) =>
          metadata.annotations?.[annotations.cordonedByShale] !== undefined ||
          this.#cluster.get(MachineConfigNodes, metadata.name)?.spec.grant?.level === 'Disrupt',
      );
    this.#taken = new Set(touched.map(({ metadata }) => metadata.name));
    const unavailable = inPool.filter((node) => !isUp(node) || node.spec?.unschedulable === true).length;
    if (taken.length > 0 && !this.#lags && unavailable > this.#weather.maxUnavailable)
      this.violations.push(
        `a node was taken with ${unavailable} unavailable, ${this.#weather.maxUnavailable} allowed`,
      );
  }

  #leftBehind(): readonly string[] {
    const nodes = this.#cluster.list(Nodes).flatMap((node) => {
      const { name, labels } = node.metadata;
      const object = this.#cluster.get(MachineConfigNodes, name);
      const current = object?.status?.configVersion?.current;
      const isBehind = labels?.[WORKER] !== undefined && current !== `rendered-worker-${this.#target}`;
      const mark = node.metadata.annotations?.[annotations.cordonedByShale];
      const saysCordoned = object?.status?.conditions?.some(({ type }) => type === 'Cordoned') === true;
      const untouched =
        !saysCordoned &&
        node.spec?.unschedulable !== true &&
        mark === undefined &&
        object?.spec.grant === undefined;
      return isBehind || !untouched ? [JSON.stringify({ node, object })] : [];
    });
    const leases = this.#cluster
      .list(Leases)
      .filter(({ spec }) => spec?.holderIdentity === US)
      .map(({ metadata }) => metadata.name);
    return [...nodes, ...leases];
  }
}

/** The controllers of pools and of nodes without one, with nothing remembered from an earlier process. */
function startOperator(cluster: MemoryCluster, monotonic: () => number) {
  const { caches, membership, leases, work, pools, catchUp } = steppedOperator(cluster, Date.now, monotonic);
  const known = new Set<string>();
  caches.nodes.onChange(({ object }) => void known.add(object.metadata.name));
  // An operator that was not there when a node went finds its lease.
  caches.leases.onChange(({ object }) => void known.add(object.metadata.name.replace(/^node-(?=node-)/, '')));
  const departed = new DepartedNodes({ caches, membership, leases, work });
  catchUp();
  return {
    catchUp,
    async look() {
      const looks = [() => pools.reconcile('worker', signal)];
      for (const name of known) looks.push(() => departed.reconcile(name, signal));
      for (const look of looks) await look();
    },
  };
}

function isUp(node: Node | undefined): boolean {
  return node?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true;
}

function isKilled(error: unknown): boolean {
  return error instanceof Killed;
}

function annotated(node: Node, name: string, value: string | undefined): Node {
  const { [name]: _old, ...others } = node.metadata.annotations ?? {};
  const next = value === undefined ? others : { ...others, [name]: value };
  return { ...node, metadata: { ...node.metadata, annotations: next } };
}

function leaseOf(node: string, holderIdentity: string, renewedAt: number): Lease {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: leaseNameOf(node), namespace: DEFAULT_LEASE_NAMESPACE, uid: 'lease' },
    spec: { holderIdentity, renewTime: new Date(renewedAt).toISOString(), leaseDurationSeconds: 300 },
  };
}

/** The trouble meets one write, after so many went well; a killed process writes nothing more. */
function once(trouble: Trouble, after: number): () => Trouble {
  let writes = 0;
  return () => {
    writes += 1;
    if (trouble === 'killed') return writes > after ? 'killed' : 'none';
    return writes === after + 1 ? trouble : 'none';
  };
}
