import type { ClusterPolicies, PoolDisruptionPolicy } from '../api/disruption-policy.ts';
import { matchesSelector } from '../api/label-selector.ts';
import type { MachineConfigPool } from '../api/machine-config-pool.ts';
import type { MachineConfiguration, MachineConfigurationStatus } from '../api/machine-configuration.ts';
import { by, byCodeUnits } from '../api/order.ts';
import { present } from '../api/present.ts';
import { effectivePolicies, type PolicySettings, policyDigest, replacing } from './effective-policies.ts';
import { isPattern } from './path-pattern.ts';

/**
 * The policies of each pool: the cluster's, and over them those of spec.shale.nodeDisruptionPolicies that select it.
 * The operator records them in the status of the MachineConfiguration, and every process reads them there, by the
 * pool's name or by the digest that a node's spec and an image's label carry: so all decide by the same policies, also
 * while a changed label of a pool is on its way.
 */

type Spec = MachineConfiguration['spec'];
type PoolLabels = Pick<MachineConfigPool['metadata'], 'labels'>;

/** @returns the policies that a spec means for one pool. @param spec a valid one. */
export function specifiedPolicies(
  spec: Spec,
  pool: PoolLabels | undefined,
  settings: PolicySettings,
): ClusterPolicies {
  const cluster: ClusterPolicies = effectivePolicies(spec?.nodeDisruptionPolicy, settings);
  return pool === undefined ? cluster : selectedPolicies(spec, pool).reduce(overlay, cluster);
}

/** @returns the policies of spec.shale that hold for a pool, in their order. */
export function selectedPolicies(spec: Spec, { labels = {} }: PoolLabels): readonly PoolDisruptionPolicy[] {
  return (spec?.shale?.nodeDisruptionPolicies ?? []).filter(({ poolSelector = {} }) =>
    matchesSelector(poolSelector, labels),
  );
}

/** An entry of the same path, name or kind replaces the whole earlier one. */
function overlay(below: ClusterPolicies, own: PoolDisruptionPolicy): ClusterPolicies {
  const by = { source: 'Admin', policy: own.name } as const;
  const files = (own.files ?? []).map((file) => ({ ...file, ...by }));
  const units = (own.units ?? []).map((unit) => ({ ...unit, ...by }));
  const mirrors = (own.imageMirrors ?? []).map((mirror) => ({ ...mirror, policy: own.name }));
  const patterns = files.filter(({ path }) => isPattern(path));
  const plain = files.filter(({ path }) => !isPattern(path));
  const merged = {
    patterns: replacing(below.patterns ?? [], patterns, ({ path }) => path),
    imageMirrors: replacing(below.imageMirrors ?? [], mirrors, ({ kind }) => kind),
  };
  const { patterns: _patterns, imageMirrors: _mirrors, ...others } = below;
  return {
    ...others,
    files: replacing(below.files ?? [], plain, ({ path }) => path),
    units: replacing(below.units ?? [], units, ({ name }) => name),
    ...(own.sshkey === undefined ? {} : { sshkey: { ...own.sshkey, ...by } }),
    ...present({
      patterns: merged.patterns.length === 0 ? undefined : merged.patterns,
      imageMirrors: merged.imageMirrors.length === 0 ? undefined : merged.imageMirrors,
    }),
  };
}

type PoolPolicies = NonNullable<MachineConfigurationStatus['poolPolicies']>;

/**
 * @param spec a valid one.
 * @returns what the operator records: every pool by name, those with equal policies together; undefined where no policy
 *   of spec.shale exists, and the cluster's policies hold for all.
 */
export function poolPolicies(
  spec: Spec,
  pools: readonly MachineConfigPool[],
  settings: PolicySettings,
): PoolPolicies | undefined {
  if ((spec?.shale?.nodeDisruptionPolicies ?? []).length === 0) return undefined;
  const specified = pools.map(({ metadata }) => {
    const policies = specifiedPolicies(spec, metadata, settings);
    return { pool: metadata.name, policies, policyDigest: policyDigest(policies) };
  });
  return [...Map.groupBy(specified, (each) => each.policyDigest)]
    .flatMap(([digest, alike]) =>
      alike.slice(0, 1).map(({ policies }) => ({
        policyDigest: digest as string,
        pools: alike.map(({ pool }) => pool).sort(byCodeUnits),
        policies,
      })),
    )
    .sort(by(({ pools: [first = ''] }) => first));
}

/** The policies in force for a pool, and the digest that identifies them. */
export interface PoliciesInForce {
  readonly policies: ClusterPolicies;
  readonly policyDigest: string;
}

/**
 * @param status of the MachineConfiguration.
 * @returns what the operator recorded for a pool; undefined before it has recorded anything for that pool.
 */
export function policiesOfPool(
  status: MachineConfigurationStatus | undefined,
  pool: string,
): PoliciesInForce | undefined {
  if (status?.poolPolicies !== undefined)
    return status.poolPolicies.find(({ pools }) => pools.includes(pool));
  const policies = status?.nodeDisruptionPolicyStatus?.clusterPolicies;
  return policies === undefined || status?.policyDigest === undefined
    ? undefined
    : { policies, policyDigest: status.policyDigest };
}

/**
 * @param digest that a node's spec or a build names.
 * @returns the recorded policies of that digest; undefined if they are no longer in force for any pool, or if what is
 *   recorded has another digest in truth.
 */
export function policiesOfDigest(
  status: MachineConfigurationStatus | undefined,
  digest: string | undefined,
): ClusterPolicies | undefined {
  const recorded: readonly (ClusterPolicies | undefined)[] = [
    status?.nodeDisruptionPolicyStatus?.clusterPolicies,
    ...(status?.poolPolicies ?? []).map(({ policies }) => policies),
  ];
  return recorded.find((policies) => policies !== undefined && policyDigest(policies) === digest);
}

/**
 * @returns one line of the pools that policies of spec.shale select, with the names of these; undefined where none
 * does.
 */
export function summarisePools(spec: Spec, pools: readonly MachineConfigPool[]): string | undefined {
  const lines = pools.toSorted(by(({ metadata }) => metadata.name)).flatMap(({ metadata }) => {
    const names = selectedPolicies(spec, metadata).map(({ name }) => name);
    return names.length === 0 ? [] : [`${metadata.name}: ${names.join(', ')}`];
  });
  return lines.length === 0 ? undefined : lines.join('; ');
}

/** @returns one line for each policy of spec.shale that selects none of the pools. */
export function policiesWithoutPools(spec: Spec, pools: readonly MachineConfigPool[]): readonly string[] {
  const used = new Set(pools.flatMap(({ metadata }) => selectedPolicies(spec, metadata)));
  return (spec?.shale?.nodeDisruptionPolicies ?? [])
    .filter((policy) => !used.has(policy))
    .map(({ name }) => `spec.shale.nodeDisruptionPolicies: ${name} selects no MachineConfigPool`);
}
