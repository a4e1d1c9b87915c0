import { readFileSync } from 'node:fs';
import path from 'node:path';
import {
  type ProcessOptions,
  type RunningProcess,
  startProcess,
} from '@shale/apiserver/control-plane/child-process.ts';
import type { Logger } from 'pino';
import type { Pod } from '../../../api/kubernetes.ts';
import { runContainer } from '../engine/run-container.ts';
import { ContainerLogs, keyOf } from './container-logs.ts';
import {
  forgetPod,
  isShaleImage,
  type PodEnvironment,
  podDirectory,
  preparePod,
  terminationLog,
} from './pod-process.ts';
import { createVolumes, type PodVolumes } from './pod-volumes.ts';
import type { LogPlace } from './read-log.ts';

export interface PodRunnerOptions {
  readonly environment: PodEnvironment;
  readonly shale: RunShale;
  /** @param container absent: that of Shale's own process. */
  logFile(pod: Pod, container?: string): string;
  /** Whether a node is up: a pod's process runs only while its machine does. */
  nodeIsUp(node: string): boolean;
  /** Called when a process ended by itself. */
  readonly onExit: () => void;
  /** Called when a process of Shale's started or ended. */
  readonly onProcess?: ((event: PodProcessEvent) => void) | undefined;
  readonly log: Logger;
}

/** A process of Shale's in a pod. */
export type PodProcessEvent = {
  readonly pod: string;
  /** The node of the pod. */
  readonly node: string;
  readonly pid: number;
} & (
  | { readonly what: 'started' }
  | {
      readonly what: 'ended';
      readonly code: number | null;
      readonly signal: NodeJS.Signals | null;
      /** Whether its pod was stopped or its machine went down. */
      readonly wasStopped: boolean;
    }
);

/**
 * @param program the TypeScript file that runs in place of `cli/main.ts`.
 * @param image of the pod's container.
 * @returns the command that runs shale, and its first arguments.
 */
export type RunShale = (
  program: string | undefined,
  image: string,
) => readonly [command: string, ...args: string[]];

/**
 * How long a process that ended by itself stays down, doubling to the second figure (the kubelet's back-off, shorter).
 */
const RESTART_DELAY_MS = 250;
const LONGEST_RESTART_DELAY_MS = 10_000;

interface Slot {
  /** Those of its containers; they end together. */
  process: Pick<RunningProcess, 'stop' | 'kill'> | undefined;
  volumes: PodVolumes | undefined;
  /** The present start, while it is under way: what ends the slot waits for it. */
  starting: Promise<void> | undefined;
  /** Since its machine came up. */
  restarts: number;
  notBefore: number;
  /** Set once it has ended and is not to be started again. */
  ended: PodEnd | undefined;
  readonly pod: Pod;
}

/** How a pod ended that runs once. */
export interface PodEnd {
  readonly exitCode: number;
  /** Its last words. */
  readonly message: string;
}

/** The exit code that a shell reports for a process that SIGKILL ended, for one whose code is unknown. */
const KILLED = 137;

/** The processes of a sandbox's pods. Its owner calls stopAll on every way out. */
export class PodRunner {
  readonly #options: PodRunnerOptions;
  readonly #slots = new Map<string, Slot>();
  readonly #logs: ContainerLogs;
  /** Asked to stop and not gone yet. */
  readonly #stopping = new Set<Slot>();

  constructor(options: PodRunnerOptions) {
    this.#options = options;
    this.#logs = new ContainerLogs((pod, container) => {
      const image = pod.spec.containers.find(({ name }) => name === container)?.image;
      return options.logFile(pod, isShaleImage(image) ? undefined : container);
    });
  }

  /** Starts what should run and does not, stops what should not and does. */
  async sync(pods: readonly Pod[]): Promise<void> {
    const desired = new Map(pods.filter((pod) => this.#shouldRun(pod)).map((pod) => [keyOf(pod), pod]));
    const excess = [...this.#slots].filter(([key]) => !desired.has(key));
    await Promise.all(excess.map(([key, slot]) => this.#stop(key, slot)));
    for (const [key, pod] of desired) {
      const slot = this.#slots.get(key) ?? newSlot(pod);
      this.#slots.set(key, slot);
      if (slot.process !== undefined || slot.ended !== undefined || performance.now() < slot.notBefore)
        continue;
      slot.starting = this.#start(slot);
      try {
        await slot.starting;
      } finally {
        slot.starting = undefined;
      }
    }
  }

  /** @returns whether the pod runs: as a process, or, for an image that is not Shale's, by pretence. */
  isRunning(pod: Pod): boolean {
    return hasProcess(pod)
      ? this.#slots.get(keyOf(pod))?.process !== undefined
      : this.#options.nodeIsUp(pod.spec.nodeName ?? '');
  }

  /** @returns how often the pod's process ended, by itself or with its machine. */
  restarts(pod: Pod): number {
    return this.#logs.restarts(pod);
  }

  /** @returns how the pod ended; undefined while it runs, or is to be started again. */
  ended(pod: Pod): PodEnd | undefined {
    return this.#slots.get(keyOf(pod))?.ended;
  }

  /**
   * @param previous that of the container before its last restart.
   * @returns where the log of a container is; undefined for one without a process, or without a restart.
   */
  logOf(uid: string, container: string, previous: boolean): LogPlace | undefined {
    return this.#logs.find(uid, container, previous);
  }

  /** @returns ms until a process that ended by itself is started again; undefined when none waits. */
  nextRestart(): number | undefined {
    const waiting = [...this.#slots.values()].filter(
      ({ process, ended }) => process === undefined && ended === undefined,
    );
    if (waiting.length === 0) return undefined;
    return Math.max(1, Math.ceil(Math.min(...waiting.map((slot) => slot.notBefore)) - performance.now()));
  }

  /** Ends the processes of a node without notice, as a power failure or a reboot does. */
  async killNode(node: string): Promise<void> {
    const isOnNode = (slot: Slot) => slot.pod.spec.nodeName === node;
    const slots = [...this.#slots].filter(([, slot]) => isOnNode(slot));
    for (const [key] of slots) this.#slots.delete(key);
    const killed = [...slots.map(([, slot]) => slot), ...[...this.#stopping].filter(isOnNode)];
    await Promise.all(
      killed.map(async (slot) => {
        await Promise.allSettled([slot.starting]);
        await slot.process?.kill();
        await slot.volumes?.remove();
      }),
    );
  }

  async stopAll(): Promise<void> {
    await Promise.all([...this.#slots].map(([key, slot]) => this.#stop(key, slot)));
  }

  #shouldRun({ metadata, spec }: Pod): boolean {
    return (
      hasProcess({ spec }) &&
      metadata.deletionTimestamp === undefined &&
      this.#options.nodeIsUp(spec.nodeName ?? '')
    );
  }

  async #stop(key: string, slot: Slot): Promise<void> {
    this.#slots.delete(key);
    this.#stopping.add(slot);
    // A failed start is reported to who asked for it.
    await Promise.allSettled([slot.starting]);
    await slot.process?.stop();
    this.#stopping.delete(slot);
    await slot.volumes?.remove();
    await forgetPod(slot.pod, this.#options.environment);
  }

  async #start(slot: Slot): Promise<void> {
    const { environment } = this.#options;
    const { pod } = slot;
    const { namespace = 'default' } = pod.metadata;
    slot.volumes ??= await createVolumes(pod, (name) => environment.findSecret(namespace, name));
    if (slot.volumes === undefined) {
      // A Secret of it does not exist yet.
      slot.notBefore = performance.now() + RESTART_DELAY_MS;
      return;
    }
    const { directories } = slot.volumes;
    this.#logs.noteStart(pod);
    const processes = [...(await this.#startOthers(slot, directories))];
    try {
      processes.push(await this.#startShale(slot, directories));
    } catch (error) {
      await Promise.all(processes.map((process) => process.kill()));
      throw error;
    }
    const all = (end: 'stop' | 'kill') => async () => {
      await Promise.all(processes.map((process) => process[end]()));
    };
    // One of them may have ended while the others started.
    if (slot.ended !== undefined) await all('kill')();
    else slot.process = { stop: all('stop'), kill: all('kill') };
  }

  async #startShale(slot: Slot, directories: ReadonlyMap<string, string>): Promise<RunningProcess> {
    const { environment, shale, logFile, onProcess, log } = this.#options;
    const { pod } = slot;
    const { program, image, args, env } = await preparePod(pod, environment, directories);
    const [command, ...first] = shale(program, image);
    const about = { pod: pod.metadata.name, node: pod.spec.nodeName ?? '' };
    const process = await startProcess({
      name: pod.metadata.name,
      command,
      args: [...first, ...args],
      env,
      logFile: logFile(pod),
      onExit: ({ pid, ...exit }) => {
        const wasStopped = this.#slots.get(keyOf(pod)) !== slot;
        onProcess?.({ what: 'ended', ...about, pid, ...exit, wasStopped });
        this.#onExit(slot, exit);
      },
    });
    onProcess?.({ what: 'started', ...about, pid: process.pid });
    log.debug({ pod: pod.metadata.name, pid: process.pid }, 'process started');
    return process;
  }

  /** Podman is the only image that is not Shale's and that runs beside one of Shale's. */
  async #startOthers(slot: Slot, volumes: ReadonlyMap<string, string>): Promise<readonly RunningProcess[]> {
    const { environment, logFile } = this.#options;
    const { pod } = slot;
    const others = pod.spec.containers.filter(({ image }) => !isShaleImage(image));
    return Promise.all(
      others.map((container) =>
        runContainer({
          pod,
          container,
          volumes,
          dir: path.join(podDirectory(pod, environment), container.name),
          logFile: logFile(pod, container.name),
          onExit: (exit) => this.#onExit(slot, exit),
        }),
      ),
    );
  }

  #onExit(slot: Slot, { code, signal }: Omit<Parameters<ProcessOptions['onExit']>[0], 'pid'>): void {
    const { environment, log, onExit } = this.#options;
    const { pod } = slot;
    const others = slot.process;
    slot.process = undefined;
    void others?.kill();
    if (pod.spec.restartPolicy === 'Never') {
      slot.ended ??= { exitCode: code ?? KILLED, message: readIfPresent(terminationLog(pod, environment)) };
    } else {
      const delay = Math.min(RESTART_DELAY_MS * 2 ** slot.restarts, LONGEST_RESTART_DELAY_MS);
      slot.restarts += 1;
      this.#logs.noteEnd(pod);
      slot.notBefore = performance.now() + delay;
      log.debug({ pod: pod.metadata.name, code, signal, delay }, 'process ended');
    }
    onExit();
  }
}

/** Other pods are only pretended to run. */
function hasProcess({ spec }: Pick<Pod, 'spec'>): boolean {
  return spec.containers.some(({ image }) => isShaleImage(image));
}

function newSlot(pod: Pod): Slot {
  return {
    process: undefined,
    volumes: undefined,
    starting: undefined,
    restarts: 0,
    notBefore: 0,
    ended: undefined,
    pod,
  };
}

function readIfPresent(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
