import type { DaemonSet, Deployment, Node, Pod } from '../../../api/kubernetes.ts';
import type { Condition } from '../../../api/object.ts';
import { setCondition } from '../../../cluster/update-object.ts';
import { nodesOf, podsOf } from './plan-pods.ts';
import { isOfTemplate, leastReady, templateHash } from './plan-rollout.ts';
import type { PodEnd } from './pod-runner.ts';
import { podAddress } from './pod-volumes.ts';

/** @returns the status that the deployment controller would write, given which pods run. */
export function deploymentStatus(
  deployment: Deployment,
  pods: readonly Pod[],
  isRunning: (pod: Pod) => boolean,
  now: Date,
): NonNullable<Deployment['status']> {
  const mine = podsOf(deployment, pods);
  const hash = templateHash(deployment);
  const ready = mine.filter(isRunning).length;
  return {
    ...generation(deployment),
    replicas: mine.length,
    updatedReplicas: mine.filter((pod) => isOfTemplate(pod, hash)).length,
    readyReplicas: ready,
    availableReplicas: ready,
    conditions: setCondition(deployment.status?.conditions ?? [], availability(deployment, ready), now),
  };
}

/** `kubectl wait --for=condition=Available deployment/NAME` */
function availability({ spec }: Deployment, ready: number): Omit<Condition, 'lastTransitionTime'> {
  const isAvailable = ready >= leastReady(spec);
  return {
    type: 'Available',
    status: isAvailable ? 'True' : 'False',
    reason: isAvailable ? 'MinimumReplicasAvailable' : 'MinimumReplicasUnavailable',
    message: isAvailable
      ? 'Deployment has minimum availability.'
      : 'Deployment does not have minimum availability.',
  };
}

/** @returns the status that the DaemonSet controller would write, given which pods run. */
export function daemonSetStatus(
  daemonSet: DaemonSet,
  pods: readonly Pod[],
  nodes: readonly Node[],
  isRunning: (pod: Pod) => boolean,
): NonNullable<DaemonSet['status']> {
  const wanted = nodesOf(daemonSet, nodes);
  const all = podsOf(daemonSet, pods);
  const mine = all.filter(({ spec }) => wanted.includes(spec.nodeName ?? ''));
  const hash = templateHash(daemonSet);
  const ready = mine.filter(isRunning).length;
  return {
    ...generation(daemonSet),
    desiredNumberScheduled: wanted.length,
    currentNumberScheduled: mine.length,
    updatedNumberScheduled: mine.filter((pod) => isOfTemplate(pod, hash)).length,
    numberReady: ready,
    numberAvailable: ready,
    ...(wanted.length === ready ? {} : { numberUnavailable: wanted.length - ready }),
    numberMisscheduled: all.length - mine.length,
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
