import type { Secret } from './kubernetes.ts';
import { annotations } from './names.ts';

/*
 * What several rooms know of Cluster API (kubernetes-sigs/cluster-api, api/core/v1beta2): its labels and annotations,
 * and where it keeps the kubeconfigs of workload clusters.
 */

export const capiNames = {
  clusterLabel: 'cluster.x-k8s.io/cluster-name',
  paused: 'cluster.x-k8s.io/paused',
  /** On a Machine: a MachineHealthCheck skips it, whatever the value (machinehealthcheck_targets.go). */
  skipRemediation: 'cluster.x-k8s.io/skip-remediation',
  /** On a Machine: from when its owner has decided on an update in place until UpdateMachine is done. */
  updateInProgress: 'in-place-updates.internal.cluster.x-k8s.io/update-in-progress',
} as const;

/** @returns the name of the Secret that has the kubeconfig of a Cluster, in the Cluster's namespace (util/secret). */
export function kubeconfigSecretName(cluster: string): string {
  return `${cluster}-kubeconfig`;
}

/** @returns the text of the kubeconfig in such a Secret; undefined where Cluster API has not written it yet. */
export function kubeconfigOf({ data }: Pick<Secret, 'data'>): string | undefined {
  const value = data?.['value'];
  return value === undefined ? undefined : Buffer.from(value, 'base64').toString('utf8');
}

type Annotations = Readonly<Record<string, string>>;
type AnnotationsPatch = Readonly<Record<string, string | null>>;

/**
 * @param holder the process of Shale that keeps MachineHealthChecks off a Machine; its mark says so.
 * @returns what to write to the annotations of the Machine; undefined where somebody has set the annotation already.
 */
export function exemptionPatch(current: Annotations, holder: string): AnnotationsPatch | undefined {
  if (current[capiNames.skipRemediation] !== undefined) return undefined;
  return { [capiNames.skipRemediation]: '', [annotations.skipRemediation]: holder };
}

/** @returns whether that process keeps MachineHealthChecks off the Machine with these annotations. */
export function isExemptedBy(current: Annotations, holder: string): boolean {
  return current[annotations.skipRemediation] === holder;
}

/**
 * What somebody has written over the annotation since then is theirs.
 *
 * @returns what takes {@link exemptionPatch} back; undefined where there is nothing of the holder's.
 */
export function endedExemptionPatch(current: Annotations, holder: string): AnnotationsPatch | undefined {
  if (!isExemptedBy(current, holder)) return undefined;
  return {
    ...(current[capiNames.skipRemediation] === '' && { [capiNames.skipRemediation]: null }),
    [annotations.skipRemediation]: null,
  };
}
