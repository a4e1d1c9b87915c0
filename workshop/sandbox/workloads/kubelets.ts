import type { ReadContainerLog } from '@shale/apiserver/logs/serve-log.ts';
import type { PodRunner } from './pod-runner.ts';
import { readLog } from './read-log.ts';

/** What the API server asks the kubelets for. It is started before them, because they need it. */
export interface Kubelets {
  readonly readContainerLog: ReadContainerLog;
  /** Says whose pods run. */
  read(runner: Pick<PodRunner, 'logOf'>): void;
}

/** @returns kubelets without a pod: until pods run, their logs are empty. */
export function createKubelets(): Kubelets {
  let pods: Pick<PodRunner, 'logOf'> | undefined;
  return {
    read(runner) {
      pods = runner;
    },
    async *readContainerLog({ uid, container }, options, end) {
      const { previous } = options;
      const place = pods?.logOf(uid, container, previous);
      // What has ended gets no new lines.
      const follow = options.follow && !previous;
      if (place !== undefined) yield* readLog(place, { ...options, follow }, end);
      // A pod that is only pretended to run says nothing for as long as it does.
      else if (follow) await untilAborted(end);
    },
  };
}

function untilAborted(signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (signal.aborted) resolve();
  else signal.addEventListener('abort', () => resolve(), { once: true });
  return promise;
}
