import type { Logger } from 'pino';
import {
  type DaemonSet,
  DaemonSets,
  type Deployment,
  Deployments,
  type Node,
  Nodes,
  type Pod,
  Pods,
} from '../../../api/kubernetes.ts';
import type { Kind, KubernetesObject } from '../../../api/object.ts';
import { type ApiClient, isAlreadyExists, isConflict, isNotFound } from '../../../cluster/api-client.ts';
import { done, type Result, requeueAfter, runController } from '../../../cluster/controller.ts';
import { createInformer, type Informer } from '../../../cluster/informer.ts';
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

/** There is one thing to keep true: all pods together. */
const ALL = 'pods';

/**
 * The sandbox's deployment controller, DaemonSet controller, scheduler and kubelets: pods are created, placed, run as
 * local processes, and reported.
 */
export class Workloads {
  readonly #options: WorkloadsOptions;
  readonly #queue = createWorkQueue();
  readonly #deployments: Informer<Deployment>;
  readonly #daemonSets: Informer<DaemonSet>;
  readonly #pods: Informer<Pod>;
  readonly #nodes: Informer<Node>;
  /** Keys of pods that were deleted. */
  readonly #former = new Set<string>();

  constructor(options: WorkloadsOptions) {
    const { client, log } = options;
    this.#options = options;
    this.#deployments = createInformer(client, Deployments, { log });
    this.#daemonSets = createInformer(client, DaemonSets, { log });
    this.#pods = createInformer(client, Pods, { log });
    this.#nodes = createInformer(client, Nodes, { log });
    for (const cache of this.#caches()) cache.onChange(() => this.wake());
    this.#pods.onChange(({ type, object: { metadata } }) => {
      if (type === 'DELETED') this.#former.add(podKey(metadata));
    });
  }

  /** Something outside of the API changed: a process ended, a machine went down or came up. */
  wake(): void {
    this.#queue.add(ALL);
  }

  /** Runs until the signal, and leaves no process behind. */
  async run(): Promise<void> {
    const { log, signal, runner } = this.#options;
    const watching = this.#caches().map((cache) => cache.start(signal));
    await Promise.all(this.#caches().map((cache) => cache.synced()));
    this.wake();
    const reconcile = () => this.#reconcile();
    try {
      await runController({ name: 'workloads', queue: this.#queue, workers: 1, reconcile, log, signal });
    } finally {
      await runner.stopAll();
    }
    await Promise.all(watching);
  }

  #caches() {
    return [this.#deployments, this.#daemonSets, this.#pods, this.#nodes] as const;
  }

  async #reconcile(): Promise<Result> {
    const { runner } = this.#options;
    await this.#createAndDelete();
    const pods = this.#pods.list();
    await runner.sync(pods);
    const isLeaving = ({ metadata }: Pod) => metadata.deletionTimestamp !== undefined;
    for (const pod of pods.filter(isLeaving)) await this.#finishDeletion(pod);
    await this.#report(pods.filter((pod) => !isLeaving(pod)));
    const restart = runner.nextRestart();
    return restart === undefined ? done : requeueAfter(restart);
  }

  async #createAndDelete(): Promise<void> {
    const { client } = this.#options;
    const plan = planPods({
      deployments: this.#deployments.list(),
      daemonSets: this.#daemonSets.list(),
      pods: this.#pods.list(),
      nodes: this.#nodes.list(),
      former: this.#former,
    });
    for (const pod of plan.create) {
      // Created a moment ago, and not in the cache yet.
      await client.create(Pods, pod, namespaceOf(pod)).catch(unless(isAlreadyExists));
    }
    for (const pod of plan.delete) {
      await client.delete(Pods, pod.metadata.name, { ...namespaceOf(pod), ...sameObject(pod) });
    }
    for (const { pod, node } of plan.bind) await bindPod(client, pod, node);
  }

  /** What a kubelet does last: the process is gone, so the object may go. */
  async #finishDeletion(pod: Pod): Promise<void> {
    const now = { gracePeriodSeconds: 0 };
    await this.#options.client.delete(Pods, pod.metadata.name, {
      ...namespaceOf(pod),
      ...sameObject(pod),
      ...now,
    });
  }

  async #report(pods: readonly Pod[]): Promise<void> {
    const { client, runner, signal } = this.#options;
    const isRunning = (pod: Pod) => runner.isRunning(pod);
    for (const pod of pods) {
      await updateStatus(
        client,
        Pods,
        pod,
        (known) => podStatus(known, isRunning(pod), runner.restarts(pod), runner.ended(pod)),
        { signal },
      ).catch(unless(isNotFound));
    }
    for (const deployment of this.#deployments.list()) {
      const status = (known: Deployment) => deploymentStatus(known, pods, isRunning, new Date());
      await updateStatus(client, Deployments, deployment, status, { signal }).catch(unless(isNotFound));
    }
    for (const daemonSet of this.#daemonSets.list()) {
      const status = (known: DaemonSet) => daemonSetStatus(known, pods, this.#nodes.list(), isRunning);
      await updateStatus(client, DaemonSets, daemonSet, status, { signal }).catch(unless(isNotFound));
    }
  }
}

const Bindings: Kind<KubernetesObject & { readonly target: object }> = {
  group: '',
  version: 'v1',
  kind: 'Binding',
  plural: 'bindings',
  namespaced: true,
};

/** The embedded API server has no bindings; a real one lets nobody write the node of a pod in another way. */
async function bindPod(client: ApiClient, pod: Pod, node: string): Promise<void> {
  const { name } = pod.metadata;
  const binding = {
    apiVersion: 'v1',
    kind: 'Binding',
    metadata: { name },
    target: { apiVersion: 'v1', kind: 'Node', name: node },
  };
  try {
    await client.create(Bindings, binding, namespaceOf(pod));
  } catch (error) {
    if (isConflict(error)) return;
    if (!isNotFound(error)) throw error;
    const patch = { type: 'merge', body: { spec: { nodeName: node } } } as const;
    await client.patch(Pods, name, patch, namespaceOf(pod)).catch(unless(isNotFound));
  }
}

function namespaceOf({ metadata }: { readonly metadata: { readonly namespace?: string | undefined } }) {
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
