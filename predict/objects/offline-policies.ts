import { isDeepStrictEqual } from 'node:util';
import type { ClusterPolicies } from '../../api/disruption-policy.ts';
import { defaultPolicySettings, type PolicySettings } from '../../disruption/effective-policies.ts';
import { policiesOfPool, specifiedPolicies } from '../../disruption/pool-policies.ts';
import type { OfflineCluster } from './offline-cluster.ts';

/**
 * @returns the policies that apply to the change: unless it changes them, those that the operator reports as in force,
 *   which differ from spec while spec is invalid.
 */
export function policiesAfter(
  before: OfflineCluster,
  after: OfflineCluster,
  { pool, settings }: { readonly pool: string; readonly settings: PolicySettings },
): ClusterPolicies {
  const { status, metadata } = before.machineConfiguration ?? {};
  const inForce = policiesOfPool(status, pool)?.policies;
  const isCurrent = status?.observedGeneration === metadata?.generation;
  const isKept =
    keepsPolicy(before, after) && isDeepStrictEqual(labelsOf(before, pool), labelsOf(after, pool));
  if (inForce !== undefined && isCurrent && isKept) return inForce;
  // The operator's flag is recorded with the policies; a plan of a cluster needs no flag of its own.
  const { containerRuntimeUnit = settings.containerRuntimeUnit } =
    status?.nodeDisruptionPolicyStatus?.clusterPolicies ?? {};
  return policiesOf(after, pool, { containerRuntimeUnit });
}

/** Policies of spec.shale select pools by their labels. */
function labelsOf({ pools }: OfflineCluster, name: string): Readonly<Record<string, string>> {
  return pools.find(({ metadata }) => metadata.name === name)?.metadata.labels ?? {};
}

/** @returns whether a change doesn't affect the MachineConfiguration's spec. */
export function keepsPolicy(before: OfflineCluster, after: OfflineCluster): boolean {
  return isDeepStrictEqual(before.machineConfiguration?.spec, after.machineConfiguration?.spec);
}

/**
 * @param pool by name; a pool that doesn't exist has no labels. Undefined: what holds where no policy of spec.shale
 *   does.
 * @param settings from the operator's flags.
 * @returns the disruption policies of spec: the defaults, overridden by the MachineConfiguration's.
 */
export function policiesOf(
  { machineConfiguration, pools }: OfflineCluster,
  pool: string | undefined,
  settings: PolicySettings = defaultPolicySettings,
): ClusterPolicies {
  const named = pool === undefined ? undefined : pools.find(({ metadata }) => metadata.name === pool);
  const labelled = pool === undefined ? undefined : (named?.metadata ?? {});
  return specifiedPolicies(machineConfiguration?.spec, labelled, settings);
}
