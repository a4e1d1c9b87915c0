import type { DaemonSet, Deployment, Pod } from '../../../api/kubernetes.ts';
import { podsOf } from './plan-pods.ts';
import type { PodEnd } from './pod-runner.ts';
import { podAddress } from './pod-volumes.ts';

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
 * @param restarts of its process. @param ended how it ended, for one that is not started again.
 * @returns the status that a kubelet would write of a pod.
 */
export function podStatus(
  pod: Pod,
  running: boolean,
  restarts: number,
  ended?: PodEnd,
): NonNullable<Pod['status']> {
  const phase = ended === undefined ? 'Pending' : ended.exitCode === 0 ? 'Succeeded' : 'Failed';
  return {
    ...pod.status,
    phase: running ? 'Running' : phase,
    ...(running ? { podIP: podAddress(pod) } : {}),
    conditions: [
      { type: 'PodScheduled', status: 'True' },
      { type: 'Ready', status: running ? 'True' : 'False' },
    ],
    containerStatuses: pod.spec.containers.map(({ name, image = '' }) => ({
      name,
      image,
      ready: running,
      restartCount: restarts,
      ...(ended === undefined ? {} : { state: { terminated: { ...ended } } }),
    })),
  };
}

function generation({ metadata }: Deployment | DaemonSet): { readonly observedGeneration?: number } {
  return metadata.generation === undefined ? {} : { observedGeneration: metadata.generation };
}
