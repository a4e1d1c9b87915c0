import { mkdir, readdir, rm } from 'node:fs/promises';
import type { Logger } from 'pino';
import { Nodes, Secrets } from '../../api/kubernetes.ts';
import type { DigestedPullspec } from '../../api/references.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import { createApiClient } from '../../cluster/http-api-client.ts';
import {
  CONTROL_PLANE_NODE,
  MACHINES,
  nodeObjects,
  poolObjects,
  registryCAs,
  sampleWorkload,
  stockMachineConfig,
} from './cluster-objects.ts';
import type { ControlPlane } from './control-plane.ts';
import { connectWith, kubernetesVersion } from './control-plane.ts';
import { type ClusterEngine, clusterEngine } from './engine/start-engine.ts';
import { CACHE, type SandboxLayout } from './layout.ts';
import { type BootFailure, createMachines, machinesThatDidNotBoot, reportNode } from './machines.ts';
import { applyObjects } from './manifests/apply.ts';
import { type InstalledVersion, thisVersion, versionObjects } from './manifests/installed-version.ts';
import { removeNode } from './node/create.ts';
import { directoryNodes } from './node/directory-nodes.ts';
import type { InstalledNode, NodeKind, NodeKindName } from './node-kind.ts';
import { type SandboxRegistry, startRegistry } from './registry.ts';
import { systemdNodes } from './systemd-node/systemd-nodes.ts';
import { untilReady } from './until-ready.ts';
import { WaitTimeout } from './wait-until.ts';
import type { Kubelets } from './workloads/kubelets.ts';
import { type PodProcessEvent, PodRunner, type RunShale } from './workloads/pod-runner.ts';
import { Workloads } from './workloads/run-workloads.ts';

export interface ClusterOptions {
  readonly layout: SandboxLayout;
  /** Its owner stops it, after the cluster. */
  readonly controlPlane: ControlPlane;
  readonly nodes: NodeKindName;
  readonly shale: RunShale;
  /** What is installed at first; absent: this checkout. */
  readonly version?: InstalledVersion | undefined;
  /** What the API server reads the logs of pods by. */
  readonly kubelets?: Kubelets;
  /** How the processes of pods reach the API server; absent: as everybody does. */
  readonly apiServerOfPods?: ControlPlane['apiServer'];
  /** Starts the registry in a directory; absent: Debian's. */
  readonly startRegistry?: typeof startRegistry;
  /** Called when a process of Shale's started or ended. */
  readonly onProcess?: (event: PodProcessEvent) => void;
  /** Called with the next step, as text. */
  readonly onProgress: (what: string) => void;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

export interface Cluster {
  readonly client: ApiClient;
  readonly registry: SandboxRegistry;
  readonly stockImage: DigestedPullspec;
  readonly engine: ClusterEngine;
  /** Resolves when the signal was aborted and nothing of the cluster runs any more. @throws what ended it before. */
  readonly ended: Promise<void>;
}

/** A calm machine takes 10 s; machines with systemd boot in a minute. */
const READY_MS = 240_000;
/** How often a machine is switched on before the cluster starts without it. */
const TRIES = 2;

/**
 * Starts a cluster on this machine: a registry, machines that boot, Shale's manifests and processes, and something to
 * drain. The remains of an earlier cluster in the directory are deleted first.
 *
 * @returns once every node has reported that it is up to date. Abort the signal and await `ended` to take it down.
 * @throws what failed; nothing runs then.
 */
export async function startCluster(options: ClusterOptions): Promise<Cluster> {
  const { layout, controlPlane, log, signal, onProgress } = options;
  const stop = new AbortController();
  const running = AbortSignal.any([stop.signal, signal]);
  onProgress('Removing the remains of an earlier sandbox');
  await clearCluster(layout);
  await rm(layout.logs, { recursive: true, force: true });
  for (const dir of [layout.logs, layout.nodes, layout.pods]) await mkdir(dir, { recursive: true });
  const connection = await connectWith(controlPlane.access);
  const client = createApiClient(connection);
  const kubeletVersion = await kubernetesVersion(connection, running);
  onProgress('Starting the registry');
  const registry = await (options.startRegistry ?? startRegistry)(layout.registry);
  const engine = clusterEngine();
  try {
    const kind = nodeKind(options.nodes);
    await kind.prepare(onProgress, running);
    onProgress('Pushing the stock OS image');
    const image = await kind.pushStock(registry, 'kind' in engine, running);
    onProgress(`Installing ${MACHINES.length} nodes and Shale's manifests`);
    const machines = MACHINES.map(({ name }) => ({ name, directory: layout.node(name) }));
    await Promise.all([
      kind.install(machines, image, running),
      installShale(
        client,
        { controlPlane, registry, image, engine, kubeletVersion, version: options.version ?? thisVersion },
        { log, signal: running },
      ),
    ]);
    onProgress('Booting the nodes');
    let isStarting = true;
    const down = new Set<string>();
    const onFailure = ({ machine, why, tries }: BootFailure) => {
      if (tries >= TRIES) down.add(machine);
      if (isStarting) onProgress(`${machine}: the machine did not come up: ${why}; trying again`);
    };
    const parts = { kubeletVersion, onFailure, signal: running };
    const loops = run({ ...options, ...parts }, client, kind, machines);
    const ended = runToEnd(loops, async () => {
      stop.abort();
      await registry.stop();
    });
    const ready = untilReady(client, {
      down: () => down.size,
      deadlineMs: READY_MS,
      log,
      signal: running,
    }).catch(unlessMachinesAreDown(client));
    await Promise.race([ready, ended]).catch(async (error: unknown) => {
      stop.abort();
      await Promise.allSettled([ended]);
      throw error;
    });
    isStarting = false;
    for (const what of await machinesThatAreDown(client)) onProgress(what);
    return { client, registry, stockImage: image, engine, ended };
  } catch (error) {
    stop.abort();
    await registry.stop();
    throw error;
  }
}

/** A machine that does not come up is somebody's to look at, in a cluster that is there otherwise. */
function unlessMachinesAreDown(client: ApiClient): (error: unknown) => Promise<void> {
  return async (error) => {
    if (!(error instanceof WaitTimeout) || (await machinesThatAreDown(client)).length === 0) throw error;
  };
}

async function machinesThatAreDown(client: ApiClient): Promise<readonly string[]> {
  return machinesThatDidNotBoot((await client.list(Nodes)).items);
}

async function runToEnd(running: Promise<void>, stop: () => Promise<void>): Promise<void> {
  try {
    await running;
  } finally {
    await stop();
  }
}

/** Deletes everything that a cluster wrote except its logs; nothing of it may run any more. */
export async function clearCluster(layout: SandboxLayout): Promise<void> {
  const nodes = await readdir(layout.nodes).catch(() => []);
  await Promise.all(nodes.map((name) => removeNode(layout.node(name))));
  for (const dir of [layout.nodes, layout.registry, layout.pods]) {
    await rm(dir, { recursive: true, force: true });
  }
}

function nodeKind(name: NodeKindName): NodeKind {
  switch (name) {
    case 'directory':
      return directoryNodes();
    case 'systemd':
      return systemdNodes(CACHE);
  }
}

async function installShale(
  client: ApiClient,
  parts: {
    readonly controlPlane: ControlPlane;
    readonly registry: SandboxRegistry;
    readonly image: DigestedPullspec;
    readonly engine: ClusterEngine;
    readonly kubeletVersion: string;
    readonly version: InstalledVersion;
  },
  options: { readonly log: Logger; readonly signal: AbortSignal },
): Promise<void> {
  const { controlPlane, registry, image, engine } = parts;
  await applyObjects(
    client,
    [
      ...nodeObjects(),
      ...(await versionObjects(parts.version, engine)),
      ...poolObjects(),
      stockMachineConfig(image),
      registryCAs({ [registry.host]: registry.caPem }),
      ...sampleWorkload(controlPlane.hasControllers),
    ],
    options,
  );
  await reportNode(client, CONTROL_PLANE_NODE, { type: 'up' }, parts.kubeletVersion);
}

/** The loops of the machines and of the pods on them. One that fails ends the other, and the cluster. */
async function run(
  options: ClusterOptions & {
    readonly kubeletVersion: string;
    readonly onFailure: (failure: BootFailure) => void;
  },
  client: ApiClient,
  kind: NodeKind,
  all: readonly InstalledNode[],
): Promise<void> {
  const { layout, controlPlane, log } = options;
  const stop = new AbortController();
  const signal = AbortSignal.any([stop.signal, options.signal]);
  const nodeIsUp = (node: string) => node === CONTROL_PLANE_NODE || machines.isUp(node);
  const runner = new PodRunner({
    environment: {
      apiServer: options.apiServerOfPods ?? controlPlane.apiServer,
      createToken: (account) => controlPlane.createToken(account),
      daemonHost: (node) => kind.daemonHost(layout.node(node)),
      findSecret: (namespace, name) => client.find(Secrets, name, { namespace, signal }),
      podsDirectory: layout.pods,
    },
    shale: options.shale,
    logFile: ({ metadata: { name } }, container) =>
      layout.log(container === undefined ? name : `${name}.${container}`),
    nodeIsUp,
    onExit: () => workloads.wake(),
    onProcess: options.onProcess,
    log,
  });
  options.kubelets?.read(runner);
  const workloads = new Workloads({ client, runner, log, signal });
  const machines = createMachines({
    client,
    kind,
    machines: all,
    killProcesses: (node) => runner.killNode(node),
    onChange: () => workloads.wake(),
    onFailure: options.onFailure,
    kubeletVersion: options.kubeletVersion,
    log,
    signal,
  });
  const loops = [machines.run(), workloads.run()];
  const results = await Promise.allSettled(
    loops.map((loop) =>
      loop.catch((error: unknown) => {
        stop.abort();
        // What breaks off because the cluster is taken down is no failure.
        if (!options.signal.aborted) throw error;
      }),
    ),
  );
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}
