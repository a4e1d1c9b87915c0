import type { DaemonSet, Deployment, Pod } from '../../api/kubernetes.ts';
import { podsOf } from './plan-pods.ts';

/** @returns the status that the deployment controller would write, given which pods run. */
export function deploymentStatus(
  deployment: Deployment,
  pods: readonly Pod[],
  isRunning: (pod: Pod) => boolean,
): NonNullable<Deployment['status']> {
  const mine = podsOf(deployment, pods);
  const ready = mine.filter(isRunning).length;
  return {
    ...generation(deployment),
    replicas: mine.length,
    updatedReplicas: mine.length,
    readyReplicas: ready,
    availableReplicas: ready,
  };
}

/** @returns the status that the DaemonSet controller would write, given which pods run. */
export function daemonSetStatus(
  daemonSet: DaemonSet,
  pods: readonly Pod[],
  isRunning: (pod: Pod) => boolean,
): NonNullable<DaemonSet['status']> {
  const mine = podsOf(daemonSet, pods);
  return {
    ...generation(daemonSet),
    desiredNumberScheduled: mine.length,
    currentNumberScheduled: mine.length,
    numberReady: mine.filter(isRunning).length,
    numberMisscheduled: 0,
  };
}

/**
 * @param restarts of its process.
 * @returns the status that a kubelet would write of a pod.
 */
export function podStatus(pod: Pod, running: boolean, restarts: number): NonNullable<Pod['status']> {
  return {
    ...pod.status,
    phase: running ? 'Running' : 'Pending',
    conditions: [
      { type: 'PodScheduled', status: 'True' },
      { type: 'Ready', status: running ? 'True' : 'False' },
    ],
    containerStatuses: pod.spec.containers.map(({ name, image = '' }) => ({
      name,
      image,
      ready: running,
      restartCount: restarts,
    })),
  };
}

function generation({ metadata }: Deployment | DaemonSet): { readonly observedGeneration?: number } {
  return metadata.generation === undefined ? {} : { observedGeneration: metadata.generation };
}
