import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { DisruptionAction } from '../../api/disruption-action.ts';
import { Events, type Node, Nodes } from '../../api/kubernetes.ts';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import { type MachineConfigNode, MachineConfigNodes } from '../../api/machine-config-node.ts';
import { type MachineConfigPool, MachineConfigPools } from '../../api/machine-config-pool.ts';
import { labels } from '../../api/names.ts';
import type { NewObject } from '../../api/object.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { runController } from '../../cluster/controller.ts';
import { createInformer } from '../../cluster/informer.ts';
import { conditionIsTrue, updateStatus } from '../../cluster/update-object.ts';
import { createWorkQueue, type WorkQueue } from '../../cluster/work-queue.ts';
import type { RolloutOptions } from '../../rollout/options.ts';
import { type ShaleRun, shale } from '../cli/shale-process.ts';
import { stepDaemon } from '../fixtures/fleet/scripted-daemon.ts';
import { deadline } from '../fixtures/patience.ts';
import { type OperatorParts, runOperator } from './builder-under-test.ts';
import { type ClusterUnderTest, log, seen, startClusterUnderTest } from './cluster-under-test.ts';

export const REBOOT: readonly DisruptionAction[] = [{ type: 'Reboot' }];
export const RESTART: readonly DisruptionAction[] = [{ type: 'Restart', service: 'chronyd.service' }];

/** What a node's stand-in for a daemon does with a target. */
export interface NodeScript {
  /** Its updates need these; default: a reboot, and nothing for its first configuration. */
  readonly actions?: readonly DisruptionAction[];
  /** Why every update but the first fails. */
  readonly fails?: string;
  /** It does not become Ready after an update. */
  readonly staysDown?: boolean;
  /** It comes no further with any update but the first until it is told another script. */
  readonly waitsBefore?: 'staging' | 'acting';
}

/** The real operator on a cluster whose nodes are objects with a scripted daemon each. Pools of a test are its own. */
export interface FleetUnderTest {
  readonly cluster: ClusterUnderTest;
  readonly client: ApiClient;
  /** A pool for the nodes of its name, with one MachineConfig. */
  addPool(name: string, spec?: object, annotations?: Readonly<Record<string, string>>): Promise<void>;
  /** A node that has come to its pool's first configuration, if `settled` isn't false. */
  addNode(name: string, pool: string, more?: Partial<NodeToAdd>): Promise<void>;
  script(node: string, script: NodeScript): void;
  /** Changes the pool's MachineConfig. @returns its next rendered config. */
  change(pool: string, content: string): Promise<string>;
  annotatePool(pool: string, annotations: Readonly<Record<string, string | null>>): Promise<void>;
  pause(pool: string, paused: boolean): Promise<void>;
  patchNode(name: string, body: object): Promise<void>;
  setReady(name: string, ready: boolean): Promise<void>;
  /** @returns the pool once that holds of one of its conditions' message or reason. @throws Error when it does not in time. */
  poolSays(pool: string, type: string, text: RegExp): Promise<MachineConfigPool>;
  /** @returns once an event of that object has this reason and message. @throws Error when none has in time. */
  eventSays(name: string, text: RegExp): Promise<void>;
  /** @returns once the node runs that config, is in service, and nothing of the rollout is on it. */
  runs(node: string, config: string, deadlineMs?: number): Promise<MachineConfigNode>;
  /** @returns names of nodes in the order in which they took their last target. */
  order(): readonly string[];
  /** Most nodes of a pool that were cordoned at once. */
  mostCordoned(pool: string): number;
  /** Runs shale as the cluster's administrator. */
  shale(...args: readonly string[]): Promise<ShaleRun>;
  stop(): Promise<void>;
}

export interface NodeToAdd {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
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
  options: Partial<RolloutOptions> = {},
  { operator, ...parts }: FleetParts = {},
): Promise<FleetUnderTest> {
  const cluster = await startClusterUnderTest(signal);
  const { client } = cluster;
  const stopping = new AbortController();
  const until = AbortSignal.any([signal, stopping.signal]);
  const scripts = new Map<string, NodeScript>();
  const order: string[] = [];
  const queue = createWorkQueue();
  const dir = await mkdtemp(path.join(tmpdir(), 'shale-fleet-'));
  const kubeconfig = path.join(dir, 'kubeconfig');
  await writeFile(kubeconfig, cluster.kubeconfig(), { mode: 0o600 });
  const cordons = watchCordons(client, until);
  const running = [
    ...(operator === false ? [] : [runOperator(cluster, stopping.signal, options, parts)]),
    runDaemons({ client, queue, scripts, onUpdate: (name) => order.push(name) }, until),
    cordons.ended,
  ];

  const patchNode = async (name: string, body: object) => {
    await client.patch(Nodes, name, { type: 'merge', body }, { signal });
  };
  const configOf = async (pool: string) =>
    (await client.get(MachineConfigPools, pool, { signal })).spec.configuration?.name;
  const runs = (node: string, config: string, deadlineMs?: number) => {
    const isDone = ({ spec, status }: MachineConfigNode) => {
      const isThere =
        status?.configVersion?.current === config && conditionIsTrue(status.conditions, 'Updated');
      const isCordoned = status?.conditions?.some(({ type }) => type === 'Cordoned') === true;
      return isThere && spec.grant === undefined && !isCordoned;
    };
    return seen(client, MachineConfigNodes, node, isDone, deadlineMs);
  };

  return {
    cluster,
    client,
    patchNode,
    runs,
    order: () => order,
    mostCordoned: cordons.most,
    script(node, script) {
      scripts.set(node, script);
      queue.add(node);
    },
    shale: (...args) => shale(args, { env: { KUBECONFIG: kubeconfig, HOME: dir } }),
    async addPool(name, spec = {}, annotations = {}) {
      await client.create(MachineConfigs, machineConfig(name, 'first'), { signal });
      await client.create(MachineConfigPools, pool(name, spec, annotations), { signal });
      await seen(client, MachineConfigPools, name, (found) => found.spec.configuration?.name !== undefined);
    },
    async addNode(name, inPool, { labels: own = {}, annotations = {}, script = {}, settled = true } = {}) {
      scripts.set(name, script);
      const metadata = { name, labels: { pool: inPool, ...own }, annotations };
      const created = await client.create(Nodes, { apiVersion: 'v1', kind: 'Node', metadata }, { signal });
      await client.replaceStatus(Nodes, { ...created, status: nodeStatus(true, 'first-boot') }, { signal });
      if (settled) await runs(name, (await configOf(inPool)) ?? '');
    },
    async change(name, content) {
      const before = await configOf(name);
      const { spec } = machineConfig(name, content);
      await client.patch(MachineConfigs, `50-${name}`, { type: 'merge', body: { spec } }, { signal });
      const after = await seen(
        client,
        MachineConfigPools,
        name,
        (found) => found.spec.configuration?.name !== before,
      );
      return after.spec.configuration?.name ?? '';
    },
    async annotatePool(name, annotations) {
      const body = { metadata: { annotations } };
      await client.patch(MachineConfigPools, name, { type: 'merge', body }, { signal });
    },
    async pause(name, paused) {
      const body = { spec: { paused } };
      await client.patch(MachineConfigPools, name, { type: 'merge', body }, { signal });
    },
    setReady: (name, ready) => setReady(client, name, ready),
    poolSays: (name, type, text) =>
      seen(client, MachineConfigPools, name, ({ status }) => {
        const condition = status?.conditions?.find((found) => found.type === type);
        return (
          condition !== undefined && text.test(`${condition.status} ${condition.reason} ${condition.message}`)
        );
      }),
    async eventSays(name, text) {
      const end = deadline(60_000);
      for (;;) {
        const { items } = await client.list(Events, { signal: end });
        const own = items.filter(({ involvedObject }) => involvedObject.name === name);
        if (own.some(({ reason, message }) => text.test(`${reason} ${message}`))) return;
        await delay(50, undefined, { signal: end });
      }
    },
    async stop() {
      stopping.abort();
      await Promise.all(running);
      await cluster.stop();
      await rm(dir, { recursive: true });
    },
  };
}

function pool(name: string, spec: object, annotations: Readonly<Record<string, string>>) {
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfigPool',
    metadata: { name, annotations },
    spec: {
      machineConfigSelector: { matchLabels: { [labels.role]: name } },
      nodeSelector: { matchLabels: { pool: name } },
      ...spec,
    },
  };
}

function machineConfig(poolName: string, content: string): NewObject<MachineConfig> {
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name: `50-${poolName}`, labels: { [labels.role]: poolName } },
    spec: {
      config: {
        ignition: { version: '3.4.0' },
        storage: { files: [{ path: `/etc/${poolName}`, contents: { source: `data:,${content}` } }] },
      },
    },
  };
}

function nodeStatus(ready: boolean, bootID: string): NonNullable<Node['status']> {
  const condition = {
    type: 'Ready',
    status: ready ? ('True' as const) : ('False' as const),
    reason: ready ? 'KubeletReady' : 'KubeletNotReady',
    message: '',
    lastTransitionTime: new Date().toISOString().replace(/\.\d+Z$/, 'Z'),
  };
  return { conditions: [condition], nodeInfo: { bootID } };
}

async function setReady(client: ApiClient, name: string, ready: boolean): Promise<void> {
  await updateStatus(client, Nodes, await client.get(Nodes, name), ({ status }) =>
    nodeStatus(ready, status?.nodeInfo?.bootID ?? ''),
  );
}

interface DaemonsToRun {
  readonly client: ApiClient;
  readonly queue: WorkQueue;
  readonly scripts: ReadonlyMap<string, NodeScript>;
  readonly onUpdate: (node: string) => void;
}

/** One watch for all of them; a conflict with the operator's own writes is tried again. */
async function runDaemons(
  { client, queue, scripts, onUpdate }: DaemonsToRun,
  signal: AbortSignal,
): Promise<void> {
  const objects = createInformer(client, MachineConfigNodes, { log });
  objects.onChange(({ object }) => queue.add(object.metadata.name));
  const reconcile = async (name: string) => {
    const object = objects.get(name);
    if (object === undefined) return { kind: 'done' } as const;
    const { actions = REBOOT, fails, staysDown, waitsBefore } = scripts.get(name) ?? {};
    const isFirst = (object.status?.configVersion?.current ?? '') === '';
    const isStaged = object.status?.plan?.config === object.spec.configVersion.desired;
    if (!isFirst && waitsBefore === (isStaged ? 'acting' : 'staging')) return { kind: 'done' } as const;
    const did = await stepDaemon(client, object, {
      planFor: () => (isFirst ? [] : actions),
      failure: () => (isFirst ? undefined : fails),
      beforeApply: async () => {
        if (!isFirst && staysDown === true) await setReady(client, name, false);
      },
    });
    if (!isFirst && (did === 'applied' || did === 'rebooted')) onUpdate(name);
    return { kind: 'done' } as const;
  };
  await Promise.all([
    objects.start(signal),
    runController({ name: 'daemons', queue, workers: 4, log, signal, reconcile }),
  ]);
}

/** Counts, at each change of a node, how many of its pool are cordoned by the rollout. */
function watchCordons(client: ApiClient, signal: AbortSignal) {
  const most = new Map<string, number>();
  const nodes = createInformer(client, Nodes, { log });
  nodes.onChange(({ object }) => {
    const name = object.metadata.labels?.['pool'] ?? '';
    const cordoned = nodes
      .list()
      .filter(({ metadata, spec }) => metadata.labels?.['pool'] === name && spec?.unschedulable === true);
    most.set(name, Math.max(most.get(name) ?? 0, cordoned.length));
  });
  return { ended: nodes.start(signal), most: (name: string) => most.get(name) ?? 0 };
}
