import type { Logger } from 'pino';
import { DaemonSets, Deployments, Nodes, type Pod, Pods } from '../../../api/kubernetes.ts';
import { type ApiClient, isAlreadyExists, isNotFound } from '../../../cluster/api-client.ts';
import { done, type Result, requeueAfter, runController } from '../../../cluster/controller.ts';
import { createInformer } from '../../../cluster/informer.ts';
import { updateStatus } from '../../../cluster/update-object.ts';
import { createWorkQueue } from '../../../cluster/work-queue.ts';
import { planPods, podKey } from './plan-pods.ts';
import type { PodRunner } from './pod-runner.ts';
import { daemonSetStatus, deploymentStatus, podStatus } from './workload-status.ts';

export interface WorkloadsOptions {
  readonly client: ApiClient;
  readonly runner: PodRunner;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

export interface Workloads {
  /** Something outside of the API changed: a process ended, a machine went down or came up. */
  wake(): void;
  /** Runs until the signal, and leaves no process behind. */
  run(): Promise<void>;
}

/** There is one thing to keep true: all pods together. */
const ALL = 'pods';

/**
 * The sandbox's deployment controller, DaemonSet controller, scheduler and kubelets: pods are created, placed, run as
 * local processes, and reported.
 */
export function createWorkloads(options: WorkloadsOptions): Workloads {
  const { client, runner, log, signal } = options;
  const queue = createWorkQueue();
  const caches = {
    deployments: createInformer(client, Deployments, { log }),
    daemonSets: createInformer(client, DaemonSets, { log }),
    pods: createInformer(client, Pods, { log }),
    nodes: createInformer(client, Nodes, { log }),
  };
  const all = Object.values(caches);
  for (const cache of all) cache.onChange(() => queue.add(ALL));
  const former = new Set<string>();
  caches.pods.onChange(({ type, object: { metadata } }) => {
    if (type === 'DELETED') former.add(podKey(metadata));
  });

  async function createAndDelete(): Promise<void> {
    const plan = planPods({
      deployments: caches.deployments.list(),
      daemonSets: caches.daemonSets.list(),
      pods: caches.pods.list(),
      nodes: caches.nodes.list(),
      former,
    });
    for (const pod of plan.create) {
      // Created a moment ago, and not in the cache yet.
      await client.create(Pods, pod, namespaceOf(pod)).catch(unless(isAlreadyExists));
    }
    for (const pod of plan.delete) {
      await client.delete(Pods, pod.metadata.name, { ...namespaceOf(pod), ...sameObject(pod) });
    }
  }

  /** What a kubelet does last: the process is gone, so the object may go. */
  async function finishDeletion(pod: Pod): Promise<void> {
    await client.delete(Pods, pod.metadata.name, {
      ...namespaceOf(pod),
      ...sameObject(pod),
      gracePeriodSeconds: 0,
    });
  }

  async function report(pods: readonly Pod[]): Promise<void> {
    for (const pod of pods) {
      await updateStatus(
        client,
        Pods,
        pod,
        (seen) => podStatus(seen, runner.isRunning(pod), runner.restarts(pod), runner.ended(pod)),
        { signal },
      ).catch(unless(isNotFound));
    }
    for (const deployment of caches.deployments.list()) {
      await updateStatus(
        client,
        Deployments,
        deployment,
        (seen) => deploymentStatus(seen, pods, runner.isRunning),
        { signal },
      ).catch(unless(isNotFound));
    }
    for (const daemonSet of caches.daemonSets.list()) {
      await updateStatus(
        client,
        DaemonSets,
        daemonSet,
        (seen) => daemonSetStatus(seen, pods, runner.isRunning),
        { signal },
      ).catch(unless(isNotFound));
    }
  }

  async function reconcile(): Promise<Result> {
    await createAndDelete();
    const pods = caches.pods.list();
    await runner.sync(pods);
    const isLeaving = ({ metadata }: Pod) => metadata.deletionTimestamp !== undefined;
    for (const pod of pods.filter(isLeaving)) await finishDeletion(pod);
    await report(pods.filter((pod) => !isLeaving(pod)));
    const restart = runner.nextRestart();
    return restart === undefined ? done : requeueAfter(restart);
  }

  return {
    wake: () => queue.add(ALL),
    async run() {
      const watching = all.map((cache) => cache.start(signal));
      await Promise.all(all.map((cache) => cache.synced()));
      queue.add(ALL);
      try {
        await runController({ name: 'workloads', queue, workers: 1, reconcile, log, signal });
      } finally {
        await runner.stopAll();
      }
      await Promise.all(watching);
    },
  };
}

function namespaceOf({ metadata }: { readonly metadata: { readonly namespace?: string } }) {
  return metadata.namespace === undefined ? {} : { namespace: metadata.namespace };
}

/** A pod of the same name made since then is another one. */
function sameObject({ metadata }: Pod) {
  return metadata.uid === undefined ? {} : { preconditions: { uid: metadata.uid } };
}

function unless(isExpected: (error: unknown) => boolean): (error: unknown) => void {
  return (error) => {
    if (!isExpected(error)) throw error;
  };
}
