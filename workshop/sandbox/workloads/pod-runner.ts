import { readFileSync } from 'node:fs';
import { type RunningProcess, startProcess } from '@shale/apiserver/control-plane/child-process.ts';
import type { Logger } from 'pino';
import type { Pod } from '../../../api/kubernetes.ts';
import { forgetPod, isShaleImage, type PodEnvironment, preparePod, terminationLog } from './pod-process.ts';

export interface PodRunnerOptions {
  readonly environment: PodEnvironment;
  readonly shale: RunShale;
  logFile(pod: Pod): string;
  /** Whether a node is up: a pod's process runs only while its machine does. */
  nodeIsUp(node: string): boolean;
  /** Called when a process ended by itself. */
  readonly onExit: () => void;
  readonly log: Logger;
}

/**
 * @param program the TypeScript file that runs in place of `cli/main.ts`.
 * @returns the command that runs shale, and its first arguments.
 */
export type RunShale = (program?: string) => readonly [command: string, ...args: string[]];

/** How long a process that ended by itself stays down, doubling to the second figure (the kubelet's back-off, shorter). */
const RESTART_DELAY_MS = 250;
const LONGEST_RESTART_DELAY_MS = 10_000;

interface Slot {
  process: RunningProcess | undefined;
  /** The present start, while it is under way: what ends the slot waits for it. */
  starting: Promise<void> | undefined;
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

/** What a shell says of a process that SIGKILL ended, for one that no code is known of. */
const KILLED = 137;

/** The processes of a sandbox's pods. */
export interface PodRunner {
  /** Starts what should run and does not, stops what should not and does. */
  sync(pods: readonly Pod[]): Promise<void>;
  /** @returns whether the pod runs: as a process, or, for an image that is not Shale's, by pretence. */
  isRunning(pod: Pod): boolean;
  /** @returns how often the pod's process ended by itself. */
  restarts(pod: Pod): number;
  /** @returns how the pod ended; undefined while it runs, or is to be started again. */
  ended(pod: Pod): PodEnd | undefined;
  /** @returns ms until a process that ended by itself is started again; undefined when none waits. */
  nextRestart(): number | undefined;
  /** Ends the processes of a node without notice, as a power failure or a reboot does. */
  killNode(node: string): Promise<void>;
  stopAll(): Promise<void>;
}

/** @returns a runner without any process yet. Its owner calls stopAll on every way out. */
export function createPodRunner(options: PodRunnerOptions): PodRunner {
  const slots = new Map<string, Slot>();
  /** Told to stop and not gone yet. */
  const stopping = new Set<Slot>();

  async function stop(key: string, slot: Slot): Promise<void> {
    slots.delete(key);
    stopping.add(slot);
    // Whether it failed is told to who started it.
    await Promise.allSettled([slot.starting]);
    await slot.process?.stop();
    stopping.delete(slot);
    await forgetPod(slot.pod, options.environment);
  }

  async function start(slot: Slot): Promise<void> {
    const { pod } = slot;
    const { program, args, env } = await preparePod(pod, options.environment);
    const [command, ...first] = options.shale(program);
    slot.process = await startProcess({
      name: pod.metadata.name,
      command,
      args: [...first, ...args],
      env,
      logFile: options.logFile(pod),
      onExit: ({ code, signal }) => {
        slot.process = undefined;
        if (pod.spec.restartPolicy === 'Never') {
          const message = readIfThere(terminationLog(pod, options.environment));
          slot.ended = { exitCode: code ?? KILLED, message };
          options.onExit();
          return;
        }
        const delay = Math.min(RESTART_DELAY_MS * 2 ** slot.restarts, LONGEST_RESTART_DELAY_MS);
        slot.restarts += 1;
        slot.notBefore = performance.now() + delay;
        options.log.debug({ pod: pod.metadata.name, code, signal, delay }, 'process ended');
        options.onExit();
      },
    });
    options.log.debug({ pod: pod.metadata.name, pid: slot.process.pid }, 'process started');
  }

  return {
    async sync(pods) {
      const wanted = new Map(
        pods
          .filter(
            (pod) =>
              isShaleImage(pod.spec.containers[0]?.image) && pod.metadata.deletionTimestamp === undefined,
          )
          .filter((pod) => options.nodeIsUp(pod.spec.nodeName ?? ''))
          .map((pod) => [keyOf(pod), pod]),
      );
      await Promise.all([...slots].filter(([key]) => !wanted.has(key)).map(([key, slot]) => stop(key, slot)));
      for (const [key, pod] of wanted) {
        const slot = slots.get(key) ?? newSlot(pod);
        slots.set(key, slot);
        if (slot.process !== undefined || slot.ended !== undefined || performance.now() < slot.notBefore)
          continue;
        slot.starting = start(slot);
        try {
          await slot.starting;
        } finally {
          slot.starting = undefined;
        }
      }
    },
    isRunning: (pod) =>
      isShaleImage(pod.spec.containers[0]?.image)
        ? slots.get(keyOf(pod))?.process !== undefined
        : options.nodeIsUp(pod.spec.nodeName ?? ''),
    restarts: (pod) => slots.get(keyOf(pod))?.restarts ?? 0,
    ended: (pod) => slots.get(keyOf(pod))?.ended,
    nextRestart() {
      const waiting = [...slots.values()].filter(
        ({ process, ended }) => process === undefined && ended === undefined,
      );
      if (waiting.length === 0) return undefined;
      return Math.max(1, Math.ceil(Math.min(...waiting.map((slot) => slot.notBefore)) - performance.now()));
    },
    async killNode(node) {
      const there = [...slots].filter(([, slot]) => slot.pod.spec.nodeName === node);
      for (const [key] of there) slots.delete(key);
      const leaving = [...stopping].filter((slot) => slot.pod.spec.nodeName === node);
      await Promise.all(
        [...there.map(([, slot]) => slot), ...leaving].map(async (slot) => {
          await Promise.allSettled([slot.starting]);
          await slot.process?.kill();
        }),
      );
    },
    async stopAll() {
      await Promise.all([...slots].map(([key, slot]) => stop(key, slot)));
    },
  };
}

function newSlot(pod: Pod): Slot {
  return { process: undefined, starting: undefined, restarts: 0, notBefore: 0, ended: undefined, pod };
}

function readIfThere(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function keyOf(pod: Pod): string {
  return pod.metadata.uid ?? `${pod.metadata.namespace ?? ''}/${pod.metadata.name}`;
}
