import { statSync } from 'node:fs';
import type { Pod } from '../../../api/kubernetes.ts';
import type { LogPlace } from './read-log.ts';

/** The log of a container, and of the same container before its last restart. */
interface ContainerLog {
  readonly current: LogPlace;
  readonly previous?: LogPlace;
}

interface PodLogs {
  readonly areRunning: boolean;
  /** How often its containers ended and are to be started again. */
  readonly ends: number;
  readonly containers: ReadonlyMap<string, ContainerLog>;
}

/**
 * Where the logs of containers begin and end. Pods of one name, and the containers of a pod after a restart, write to
 * the same files one after the other; `kubectl logs` shows the container that runs, and `--previous` the one before it.
 */
export class ContainerLogs {
  /** @param logFile the file that a container writes to. */
  readonly #logFile: (pod: Pod, container: string) => string;
  /** By the pod's uid. */
  readonly #pods = new Map<string, PodLogs>();

  constructor(logFile: (pod: Pod, container: string) => string) {
    this.#logFile = logFile;
  }

  /** Called before the containers of a pod start. */
  noteStart(pod: Pod): void {
    const known = this.#pods.get(keyOf(pod));
    const containers = pod.spec.containers.map(({ name }): [string, ContainerLog] => {
      const file = this.#logFile(pod, name);
      const current = { file, from: statSync(file, { throwIfNoEntry: false })?.size ?? 0 };
      const previous = known?.containers.get(name)?.previous;
      return [
        name,
        { current, ...(previous === undefined ? {} : { previous: { ...previous, to: current.from } }) },
      ];
    });
    this.#pods.set(keyOf(pod), {
      areRunning: true,
      ends: known?.ends ?? 0,
      containers: new Map(containers),
    });
  }

  /** Called when a container of a pod ended that is to be started again. The others end with it. */
  noteEnd(pod: Pod): void {
    const known = this.#pods.get(keyOf(pod));
    if (known === undefined || !known.areRunning) return;
    const containers = [...known.containers].map(([name, { current }]): [string, ContainerLog] => [
      name,
      { current, previous: current },
    ]);
    this.#pods.set(keyOf(pod), {
      areRunning: false,
      ends: known.ends + 1,
      containers: new Map(containers),
    });
  }

  /** @returns how often the containers of a pod ended and were or are to be started again. */
  restarts(pod: Pod): number {
    return this.#pods.get(keyOf(pod))?.ends ?? 0;
  }

  /**
   * @param previous that of the container before its last restart.
   * @returns where the log of a container is; undefined for one without a process, or without a restart.
   */
  find(uid: string, container: string, previous: boolean): LogPlace | undefined {
    const log = this.#pods.get(uid)?.containers.get(container);
    return previous ? log?.previous : log?.current;
  }
}

/** @returns what tells a pod from every other, also of its name. */
export function keyOf({ metadata: { uid, namespace, name } }: Pod): string {
  return uid ?? `${namespace ?? ''}/${name}`;
}
