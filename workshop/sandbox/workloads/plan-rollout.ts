import { createHash } from 'node:crypto';
import type { DaemonSet, Deployment, Pod } from '../../../api/kubernetes.ts';
import { canonicalJson } from '../../../machineconfig/canonical-json.ts';

/** Says of which template a pod is (Kubernetes, "Deployment", "DaemonSet"). */
export const TEMPLATE_LABELS = {
  Deployment: 'pod-template-hash',
  DaemonSet: 'controller-revision-hash',
} as const;

/** @returns what tells a template from every other that its owner had. */
export function templateHash({ spec }: Deployment | DaemonSet): string {
  return createHash('sha256').update(canonicalJson(spec.template)).digest('hex').slice(0, 10);
}

/**
 * @returns whether a pod was created from the template that its owner has now. A pod that doesn't say is left alone.
 */
export function isOfTemplate({ metadata }: Pod, hash: string): boolean {
  const own = Object.values(TEMPLATE_LABELS).flatMap((label) => metadata.labels?.[label] ?? []);
  return own.length === 0 || own.includes(hash);
}

export function isStaying({ metadata }: Pod): boolean {
  return metadata.deletionTimestamp === undefined;
}

function isReady({ status }: Pod): boolean {
  return status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false;
}

type Limit = number | string | undefined;

/** @returns a number of pods: a percentage of all is rounded as its field is. */
function podsOfLimit(limit: Limit, all: number, standard: Limit, round: 'up' | 'down'): number {
  const given = limit ?? standard ?? 0;
  if (typeof given === 'number') return given;
  const part = (Number.parseFloat(given) * all) / 100;
  return round === 'up' ? Math.ceil(part) : Math.floor(part);
}

/**
 * What a rolling update of a DaemonSet deletes: pods of earlier templates, as many as may be unavailable at a time.
 * Those that aren't ready go first, because nothing is lost with them.
 *
 * @param pods its own that are not on their way out. @param nodes how many nodes are to have one.
 */
export function outdatedDaemons(daemonSet: DaemonSet, pods: readonly Pod[], nodes: number): readonly Pod[] {
  const { type = 'RollingUpdate', rollingUpdate } = daemonSet.spec.updateStrategy ?? {};
  if (type === 'OnDelete') return [];
  const hash = templateHash(daemonSet);
  const outdated = pods.filter((pod) => !isOfTemplate(pod, hash));
  // At least one, or nothing would ever be updated (DaemonSet, maxUnavailable: a percentage is rounded up).
  const most = Math.max(1, podsOfLimit(rollingUpdate?.maxUnavailable, nodes, 1, 'up'));
  const unavailable = nodes - pods.filter(isReady).length;
  return [
    ...outdated.filter((pod) => !isReady(pod)),
    ...outdated.filter(isReady).slice(0, Math.max(0, most - unavailable)),
  ];
}

export interface DeploymentStep {
  readonly create: number;
  readonly delete: readonly Pod[];
}

/** @returns how many pods of a Deployment have to be ready for it to be available. */
export function leastReady({ replicas = 1, strategy }: Deployment['spec']): number {
  if (strategy?.type === 'Recreate') return replicas;
  return replicas - podsOfLimit(strategy?.rollingUpdate?.maxUnavailable, replicas, '25%', 'down');
}

/**
 * The next step of a Deployment: pods of its template are created as far as its surge lets, and others deleted as far
 * as enough stay ready.
 *
 * @param all its own pods, also those on their way out.
 */
export function nextDeploymentStep(deployment: Deployment, all: readonly Pod[]): DeploymentStep {
  const { spec } = deployment;
  const desired = spec.replicas ?? 1;
  const hash = templateHash(deployment);
  const pods = all.filter(isStaying);
  const updated = pods.filter((pod) => isOfTemplate(pod, hash));
  const outdated = pods.filter((pod) => !isOfTemplate(pod, hash));
  const { type, rollingUpdate } = spec.strategy ?? { type: 'RollingUpdate' };
  const missing = Math.max(0, desired - updated.length);
  if (type === 'Recreate' && all.some((pod) => !isOfTemplate(pod, hash)))
    return { create: 0, delete: outdated };
  if (outdated.length === 0) return { create: missing, delete: updated.slice(desired) };
  const surge = podsOfLimit(rollingUpdate?.maxSurge, desired, '25%', 'up');
  // Neither is a mistake that the API server refuses; one more is what it takes to get anywhere.
  const least = leastReady(spec);
  const most = desired + (surge === 0 && least === desired ? 1 : surge);
  const spare = pods.filter(isReady).length - least;
  return {
    create: Math.min(missing, Math.max(0, most - pods.length)),
    delete: [
      ...updated.slice(desired),
      ...outdated.filter((pod) => !isReady(pod)),
      ...outdated.filter(isReady).slice(0, Math.max(0, spare)),
    ],
  };
}
