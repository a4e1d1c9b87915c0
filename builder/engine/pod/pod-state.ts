import type { Pod } from '../../../api/kubernetes.ts';
import { EngineError } from '../container-engine.ts';

/** How far an engine's pod is. */
export type PodState =
  /** `why` is what it waits for, a part of a sentence. */
  | { readonly kind: 'starting'; readonly why: string }
  | { readonly kind: 'running'; readonly ip: string }
  | { readonly kind: 'failed'; readonly reason: EngineError['reason']; readonly why: string };

type ContainerStatus = NonNullable<NonNullable<Pod['status']>['containerStatuses']>[number];

/**
 * Reasons of a waiting container that the kubelet tries again for good, without a change of its pod (kubelet/images,
 * kuberuntime).
 */
const CANT_START: ReadonlySet<string> = new Set([
  'CrashLoopBackOff',
  'CreateContainerConfigError',
  'CreateContainerError',
  'ErrImageNeverPull',
  'ImageInspectError',
  'ImagePullBackOff',
  'InvalidImageName',
  'RunContainerError',
]);

/** Evictions for the lack of disk, and for an emptyDir over its limit (kubelet/eviction). */
const DISK = /ephemeral.storage|emptydir|nodefs|imagefs|disk/i;

/** @param pod undefined if it was deleted. */
export function podState(pod: Pod | undefined): PodState {
  if (pod === undefined || pod.metadata.deletionTimestamp !== undefined) {
    return failed('it was deleted, for example because its node was drained');
  }
  const { phase = 'Pending', reason, message = '', podIP = '', containerStatuses = [] } = pod.status ?? {};
  if (reason === 'Evicted') {
    return failed(`it was evicted: ${message}`, DISK.test(message) ? 'EngineDiskFull' : 'EngineUnavailable');
  }
  if (reason === 'DeadlineExceeded') return failed('it ran longer than its activeDeadlineSeconds');
  for (const status of containerStatuses) {
    const why = failureOf(status);
    if (why !== undefined) return failed(why);
  }
  if (phase === 'Failed' || phase === 'Succeeded') {
    return failed([`its phase is ${phase}`, reason, message].filter(Boolean).join(': '));
  }
  return phase === 'Running' && podIP !== '' ? { kind: 'running', ip: podIP } : starting(pod);
}

function failed(why: string, reason: EngineError['reason'] = 'EngineUnavailable'): PodState {
  return { kind: 'failed', reason, why };
}

function failureOf({ name, image, state }: ContainerStatus): string | undefined {
  const { waiting, terminated } = state ?? {};
  if (terminated?.reason === 'OOMKilled') {
    return `container ${name} was OOMKilled: its node or its memory limit has too little memory for the commands`;
  }
  if (terminated !== undefined) {
    const { exitCode, message = '' } = terminated;
    return [`container ${name} ended with exit code ${exitCode}`, message.trim()].filter(Boolean).join(': ');
  }
  if (waiting?.reason === undefined || !CANT_START.has(waiting.reason)) return undefined;
  return [`container ${name} with image ${image}: ${waiting.reason}`, waiting.message]
    .filter(Boolean)
    .join(': ');
}

function starting({ status }: Pod): PodState {
  const scheduled = status?.conditions?.find(({ type }) => type === 'PodScheduled');
  if (scheduled?.status === 'False') {
    const why = [scheduled.reason ?? 'not scheduled', scheduled.message].filter(Boolean).join(': ');
    return { kind: 'starting', why };
  }
  const waiting = status?.containerStatuses?.find(({ state }) => state?.waiting?.reason !== undefined);
  return { kind: 'starting', why: waiting?.state?.waiting?.reason ?? 'its containers are starting' };
}

/** @returns the failure of a build whose engine's pod can't be used. */
export function podError(
  pod: string,
  { reason, why }: PodState & { kind: 'failed' },
  cause?: unknown,
): EngineError {
  return new EngineError(reason, `pod ${pod} of the container engine: ${why}`, { cause });
}
