import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Events, Nodes, type Taint } from '../../api/kubernetes.ts';
import { type MachineConfigNode, MachineConfigNodes } from '../../api/machine-config-node.ts';
import { type MachineConfigPool, MachineConfigPools } from '../../api/machine-config-pool.ts';
import type { SettingFields, SettingName } from '../../api/pool-settings/table.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { createInformer } from '../../cluster/informer.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import { type ShaleRun, shale } from '../cli/shale-process.ts';
import { LiveFleet, type NodeScript } from '../fixtures/fleet/live-fleet.ts';
import { deadline } from '../fixtures/patience.ts';
import type { OptionChanges } from '../fixtures/rollout-options.ts';
import { type OperatorParts, runOperator } from './builder-under-test.ts';
import { type ClusterUnderTest, log, seen, startClusterUnderTest } from './cluster-under-test.ts';

export interface NodeToAdd {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  readonly script: NodeScript;
  readonly settled: boolean;
}

export interface FleetParts extends OperatorParts {
  /** false: a test runs operators by itself. */
  readonly operator?: false;
}

/** @param options beyond what makes the operator quick. */
export async function startFleetUnderTest(
  signal: AbortSignal,
  options: OptionChanges = {},
  { operator, ...parts }: FleetParts = {},
): Promise<FleetUnderTest> {
  const cluster = await startClusterUnderTest(signal);
  const dir = await mkdtemp(path.join(tmpdir(), 'shale-fleet-'));
  await writeFile(path.join(dir, 'kubeconfig'), cluster.kubeconfig(), { mode: 0o600 });
  const runIt = (stopping: AbortSignal) =>
    operator === false ? Promise.resolve() : runOperator(cluster, stopping, options, parts);
  return new FleetUnderTest(cluster, dir, runIt, signal);
}

/** The real operator on a cluster whose nodes are objects with a scripted daemon each. Pools of a test are its own. */
export class FleetUnderTest {
  readonly cluster: ClusterUnderTest;
  readonly client: ApiClient;
  readonly #dir: string;
  readonly #signal: AbortSignal;
  readonly #stopping = new AbortController();
  readonly #scripts = new Map<string, NodeScript>();
  readonly #order: string[] = [];
  readonly #mostCordoned = new Map<string, number>();
  readonly #fleet: LiveFleet;
  readonly #running: Promise<unknown>;

  /** @param dir has the administrator's `kubeconfig`, and is deleted at the end. */
  constructor(
    cluster: ClusterUnderTest,
    dir: string,
    runOperatorUntil: (signal: AbortSignal) => Promise<void>,
    signal: AbortSignal,
  ) {
    this.cluster = cluster;
    this.client = cluster.client;
    this.#dir = dir;
    this.#signal = signal;
    const until = AbortSignal.any([signal, this.#stopping.signal]);
    this.#fleet = new LiveFleet(cluster.client, {
      log,
      workers: 4,
      scriptOf: (name) => this.#scripts.get(name) ?? {},
      onUpdate: ({ metadata }) => this.#order.push(metadata.name),
    });
    this.#running = Promise.all([
      runOperatorUntil(this.#stopping.signal),
      this.#fleet.run(until),
      this.#countCordons(until),
    ]);
  }

  /** Creates a pool for the nodes of its name, with one MachineConfig. */
  async addPool(name: string, spec: object = {}, annotations: Readonly<Record<string, string>> = {}) {
    await this.#fleet.putConfig(name, 'first', this.#signal);
    await this.#fleet.createPool(name, { spec, annotations }, this.#signal);
    await this.#poolWhen(name, ({ spec: { configuration } }) => configuration?.name !== undefined);
  }

  /** Creates a node and waits for its pool's first configuration, if `settled` isn't false. */
  async addNode(
    name: string,
    pool: string,
    { script = {}, settled = true, ...more }: Partial<NodeToAdd> = {},
  ) {
    this.#scripts.set(name, script);
    await this.#fleet.createNode(name, pool, more, this.#signal);
    if (settled) await this.runs(name, (await this.#configOf(pool)) ?? '');
  }

  script(node: string, script: NodeScript): void {
    this.#scripts.set(node, script);
    this.#fleet.wake(node);
  }

  /** Changes the pool's MachineConfig. @returns its next rendered config. */
  async change(pool: string, content: string): Promise<string> {
    const before = await this.#configOf(pool);
    await this.#fleet.putConfig(pool, content, this.#signal);
    const { spec } = await this.#poolWhen(pool, (after) => after.spec.configuration?.name !== before);
    return spec.configuration?.name ?? '';
  }

  annotatePool(name: string, annotations: Readonly<Record<string, string | null>>): Promise<void> {
    return this.#patchPool(name, { metadata: { annotations } });
  }

  /** @param shale settings to change; null removes one. */
  setPool(
    name: string,
    shale: { readonly [Name in SettingName]?: SettingFields[Name] | null },
  ): Promise<void> {
    return this.#patchPool(name, { spec: { shale } });
  }

  pause(name: string, paused: boolean): Promise<void> {
    return this.#patchPool(name, { spec: { paused } });
  }

  async patchNode(name: string, body: object): Promise<void> {
    await this.client.patch(Nodes, name, { type: 'merge', body }, { signal: this.#signal });
  }

  setReady(name: string, ready: boolean): Promise<void> {
    return this.#fleet.setReady(name, ready);
  }

  /**
   * @returns the pool once that holds of one of its conditions' message or reason. @throws Error when it does not in
   * time.
   */
  poolSays(name: string, type: string, text: RegExp): Promise<MachineConfigPool> {
    return this.#poolWhen(name, ({ status }) => {
      const condition = status?.conditions?.find((one) => one.type === type);
      return (
        condition !== undefined && text.test(`${condition.status} ${condition.reason} ${condition.message}`)
      );
    });
  }

  /** @returns once an event of that object has this reason and message. @throws Error when none has in time. */
  async eventSays(name: string, text: RegExp): Promise<void> {
    const end = deadline(60_000);
    for (;;) {
      const { items } = await this.client.list(Events, { signal: end });
      const own = items.filter(({ involvedObject }) => involvedObject.name === name);
      if (own.some(({ reason, message }) => text.test(`${reason} ${message}`))) return;
      await delay(50, undefined, { signal: end });
    }
  }

  /** @returns once the node runs that config, is in service, and nothing of the rollout is on it. */
  runs(node: string, config: string, deadlineMs?: number): Promise<MachineConfigNode> {
    const isDone = ({ spec, status }: MachineConfigNode) => {
      const runsIt =
        status?.configVersion?.current === config && conditionIsTrue(status.conditions, 'Updated');
      const isCordoned = status?.conditions?.some(({ type }) => type === 'Cordoned') === true;
      return runsIt && spec.grant === undefined && !isCordoned;
    };
    return seen(this.client, MachineConfigNodes, node, isDone, deadlineMs);
  }

  /** @returns names of nodes in the order in which they took their last target. */
  order(): readonly string[] {
    return this.#order;
  }

  /** Most nodes of a pool that were cordoned at once. */
  mostCordoned(pool: string): number {
    return this.#mostCordoned.get(pool) ?? 0;
  }

  /** Runs shale as the cluster's administrator. */
  shale(...args: readonly string[]): Promise<ShaleRun> {
    return shale(args, { env: { KUBECONFIG: path.join(this.#dir, 'kubeconfig'), HOME: this.#dir } });
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await this.cluster.stop();
    await rm(this.#dir, { recursive: true });
  }

  async #configOf(pool: string): Promise<string | undefined> {
    const { spec } = await this.client.get(MachineConfigPools, pool, { signal: this.#signal });
    return spec.configuration?.name;
  }

  #poolWhen(name: string, holds: (pool: MachineConfigPool) => boolean): Promise<MachineConfigPool> {
    return seen(this.client, MachineConfigPools, name, holds);
  }

  async #patchPool(name: string, body: object): Promise<void> {
    await this.client.patch(MachineConfigPools, name, { type: 'merge', body }, { signal: this.#signal });
  }

  /** Counts, at each change of a node, how many of its pool are cordoned by the rollout. */
  #countCordons(signal: AbortSignal): Promise<void> {
    const nodes = createInformer(this.client, Nodes, { log });
    nodes.onChange(({ object }) => {
      const name = object.metadata.labels?.['pool'] ?? '';
      const cordoned = nodes
        .list()
        .filter(({ metadata, spec }) => metadata.labels?.['pool'] === name && spec?.unschedulable === true);
      this.#mostCordoned.set(name, Math.max(this.mostCordoned(name), cordoned.length));
    });
    return nodes.start(signal);
  }
}
