import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { execa } from 'execa';
import type { ApiClient } from '../../../cluster/api-client.ts';
import { createApiClient } from '../../../cluster/http-api-client.ts';
import { createLogger } from '../../../cluster/log.ts';
import { createRegistryClient } from '../../../image/registry/registry-client.ts';
import { type Cluster, startCluster } from '../../../workshop/sandbox/cluster.ts';
import { MACHINES } from '../../../workshop/sandbox/cluster-objects.ts';
import { connectWith, startControlPlane } from '../../../workshop/sandbox/control-plane.ts';
import { startDockerRegistry } from '../../../workshop/sandbox/docker-registry.ts';
import { type SandboxLayout, sandboxLayout } from '../../../workshop/sandbox/layout.ts';
import { applyObjects } from '../../../workshop/sandbox/manifests/apply.ts';
import { readKustomization } from '../../../workshop/sandbox/manifests/kustomization.ts';
import type { NodeKindName } from '../../../workshop/sandbox/node-kind.ts';
import { runWithNode } from '../../../workshop/sandbox/programs.ts';
import type { PodProcessEvent } from '../../../workshop/sandbox/workloads/pod-runner.ts';
import {
  definitionOf,
  KubeVirtMaintenances,
  Machines,
  NodeMaintenances,
} from '../../fixtures/fleet/holders.ts';
import { apiStatus, type Front, registryErrors, startFront } from './front.ts';
import { type Observer, observe } from './observer.ts';
import type { Recorder } from './recorder.ts';
import { ScriptedNodes } from './scripted-nodes.ts';

const SHALE = path.join(import.meta.dirname, '../../../cli/main.ts');
const MANIFESTS = path.join(import.meta.dirname, '../../../manifests/base');
const CLOCK_SHIM = path.join(import.meta.dirname, 'clock-shim.ts');
/** Room for what a node writes as it boots: of a node that can't boot nothing could be seen. No image fits in. */
const BOOT_BYTES = 12 * 2 ** 20;
/** As large as the nodes of a campaign get, several times over; what isn't used takes no memory. */
const DISK_BYTES = 8 * 2 ** 30;

/** A process of Shale's that runs. */
export interface ShaleProcess {
  readonly pod: string;
  readonly node: string;
  readonly pid: number;
}

/** A sandbox whose processes reach the API server and the registry through fronts that can fail. */
export interface World {
  readonly kind: NodeKindName;
  readonly layout: SandboxLayout;
  /** The API server itself, as its administrator. */
  readonly client: ApiClient;
  readonly cluster: Cluster;
  readonly observer: Observer;
  readonly recorder: Recorder;
  readonly apiFront: Front;
  readonly registryFront: Front;
  /** Names of nodes with an operating system. */
  readonly machines: readonly string[];
  /** Nodes without one; absent in a world that has none. */
  readonly scripted: ScriptedNodes | undefined;
  /** @returns whose token that is: the name of a service account; '' of nobody. */
  accountOf(token: string): string;
  /** @returns the processes of pods whose names start with that, on that node if one is given. */
  processes(prefix: string, node?: string): readonly ShaleProcess[];
  /** Its end will not be taken for a crash. */
  expectEnd(pid: number): void;
  /** Sets the wall clock of one of Shale's programs off by that, in ms. */
  setClock(program: string, offset: number): Promise<void>;
  /** Leaves no room for an image on the disk of all nodes, or gives back what was taken. */
  fillDisk(full: boolean): Promise<void>;
  /** Aborted with the reason when the sandbox itself fails. */
  readonly failed: AbortSignal;
  /** @throws what the sandbox failed with. */
  stop(): Promise<void>;
}

interface WorldOptions {
  /** Of the world alone. */
  readonly dir: string;
  readonly kind: NodeKindName;
  /** Names of the scripted nodes that it has beside its machines. */
  readonly scripted: readonly string[];
  readonly recorder: Recorder;
  readonly signal: AbortSignal;
}

/** @returns a world once every node is up to date. */
export async function startWorld(options: WorldOptions): Promise<World> {
  const { dir, kind, recorder, signal } = options;
  const disk = path.join(dir, 'disk');
  await mkdir(disk, { recursive: true });
  await execa('mount', ['-t', 'tmpfs', '-o', `size=${DISK_BYTES}`, 'shale-soak', disk]);
  const layout: SandboxLayout = {
    ...sandboxLayout(dir),
    nodes: path.join(disk, 'nodes'),
    node: (name) => path.join(disk, 'nodes', name),
  };
  const running = new AbortController();
  const ending = AbortSignal.any([signal, running.signal]);
  const stops: (() => Promise<unknown>)[] = [() => execa('umount', ['--lazy', disk])];
  const stop = async () => {
    const problems: unknown[] = [];
    for (const each of stops.toReversed()) await each().catch((error: unknown) => problems.push(error));
    if (problems.length > 0) throw new AggregateError(problems, 'the sandbox failed');
  };
  try {
    // It outlives the cluster, whose processes take their leave of it.
    const plane = await startControlPlane(
      { assets: process.env['KUBEBUILDER_ASSETS'] },
      new AbortController().signal,
    );
    stops.push(() => plane.stop());
    const client = createApiClient(await connectWith(plane.access));
    await defineKinds(client, signal);
    const observing = new AbortController();
    const observer = await observe(client, recorder, observing.signal);
    stops.push(() => {
      observing.abort();
      return observer.ended;
    });
    const apiFront = await startFront('shale-soak-api', { ...plane.apiServer, statusBody: apiStatus });
    stops.push(() => apiFront.stop());
    const registry = await frontedRegistry(layout.registry);
    stops.push(registry.stop);
    const accounts = new Map<string, string>();
    const createToken: typeof plane.createToken = async (account) => {
      const token = await plane.createToken(account);
      accounts.set(token, account.name);
      return token;
    };
    const processes = new Processes(recorder);
    const clocks = path.join(dir, 'clocks.json');
    const offsets: Record<string, number> = {};
    await writeFile(clocks, '{}');
    const cluster = await startCluster({
      layout,
      controlPlane: { ...plane, createToken },
      nodes: kind,
      shale: (program = SHALE) => withClock(runWithNode(program), clocks),
      apiServerOfPods: apiFront,
      startRegistry: async () => registry.sandboxRegistry,
      onProcess: (event) => processes.see(event),
      onProgress: (what) =>
        recorder.record({ what: 'fault', fault: 'start', phase: 'ends', subject: what, details: '' }),
      log: createLogger('soak', 'silent'),
      signal: ending,
    });
    stops.push(() => {
      running.abort();
      return cluster.ended;
    });
    const scripted = options.scripted.length === 0 ? undefined : new ScriptedNodes(client, ending);
    stops.push(() => {
      running.abort();
      return scripted?.ended ?? Promise.resolve();
    });
    await scripted?.create(options.scripted, signal);
    const failed = new AbortController();
    cluster.ended.catch((error: unknown) => failed.abort(error));
    return {
      failed: failed.signal,
      kind,
      layout,
      client,
      cluster,
      observer,
      recorder,
      apiFront,
      registryFront: registry.front,
      scripted,
      machines: MACHINES.map(({ name }) => name),
      accountOf: (token) => accounts.get(token) ?? '',
      processes: (prefix, node) => processes.list(prefix, node),
      expectEnd: (pid) => processes.expectEnd(pid),
      setClock: async (program, offset) => {
        offsets[program] = offset;
        await writeFile(clocks, JSON.stringify(offsets));
      },
      fillDisk: async (full) => {
        const size = full ? (await usedBytes(disk)) + BOOT_BYTES : DISK_BYTES;
        await execa('mount', ['-o', `remount,size=${size}`, disk]);
      },
      stop,
    };
  } catch (error) {
    running.abort();
    await stop().catch(() => undefined);
    throw error;
  }
}

/** Kinds of others by which they hold nodes. */
const NEIGHBOURS = [NodeMaintenances, KubeVirtMaintenances, Machines];

/** Before anything else: what isn't defined can't be watched. */
async function defineKinds(client: ApiClient, signal: AbortSignal): Promise<void> {
  const objects = await readKustomization(MANIFESTS);
  const definitions = [
    ...objects.filter(({ kind }) => kind === 'CustomResourceDefinition'),
    ...NEIGHBOURS.map(definitionOf),
  ];
  await applyObjects(client, definitions, { log: createLogger('soak', 'silent'), signal });
}

function withClock(
  [node, ...args]: readonly [string, ...string[]],
  clocks: string,
): readonly [string, ...string[]] {
  return [node, '--import', `file://${CLOCK_SHIM}?file=${encodeURIComponent(clocks)}`, ...args];
}

/** @returns how many bytes of the disk are used. */
async function usedBytes(disk: string): Promise<number> {
  const { stdout } = await execa('df', ['--block-size=1', '--output=used', disk]);
  return Number(stdout.split('\n')[1]);
}

/** A registry behind a front: images are named by the front, so that everybody comes in through it. */
async function frontedRegistry(dir: string) {
  await mkdir(dir, { recursive: true });
  const own = await startDockerRegistry({ dir });
  const [host = '', port = ''] = own.host.split(':');
  const front = await startFront('shale-soak-registry', {
    host,
    port: Number(port),
    statusBody: registryErrors,
  });
  const name = `${front.host}:${front.port}`;
  const caFor = (asked: string) => (asked === name ? front.caPem : undefined);
  return {
    front,
    sandboxRegistry: {
      host: name,
      caPem: front.caPem,
      client: createRegistryClient({ caFor }),
      // The world stops it, after the cluster.
      stop: async () => undefined,
    },
    stop: async () => {
      await front.stop();
      await own.stop();
    },
  };
}

/** What runs, and which ends the campaign itself brought about. */
class Processes {
  readonly #running = new Map<number, ShaleProcess>();
  readonly #expected = new Set<number>();
  readonly #recorder: Recorder;

  constructor(recorder: Recorder) {
    this.#recorder = recorder;
  }

  see(event: PodProcessEvent): void {
    const { pod, node, pid } = event;
    if (event.what === 'started') {
      this.#running.set(pid, { pod, node, pid });
      this.#expected.delete(pid);
      this.#recorder.record({ what: 'started', pod, pid });
      return;
    }
    this.#running.delete(pid);
    const { code, signal, wasStopped } = event;
    const expected = wasStopped || this.#expected.has(pid);
    this.#recorder.record({ what: 'ended', pod, pid, code, signal, expected });
  }

  list(prefix: string, node: string | undefined): readonly ShaleProcess[] {
    return [...this.#running.values()].filter(
      (each) => each.pod.startsWith(prefix) && (node === undefined || each.node === node),
    );
  }

  expectEnd(pid: number): void {
    this.#expected.add(pid);
  }
}
