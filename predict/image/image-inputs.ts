import type { ClusterPolicies } from '../../api/disruption-policy.ts';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { policyDigest } from '../../disruption/effective-policies.ts';
import type { OfflineCluster } from '../objects/offline-cluster.ts';
import { type BaseLookups, builtBase, lookupsAround, type PoolTrees } from './base-lookup.ts';
import { type ImageInputs, requestedOf } from './image-to-build.ts';

/** One side of a change of a pool. */
interface Side {
  readonly cluster: OfflineCluster;
  readonly rendered: MachineConfig | undefined;
  /** What it was rendered from, where that is known. */
  readonly configs?: readonly MachineConfig[];
  readonly policies: ClusterPolicies;
}

/**
 * @param builds of the cluster; none without one. @param asked what registries say of the tags of the pool's base
 *   images.
 * @param architectures of the pool's nodes, as GOARCH. @param base what is known of the base image after the change.
 * @returns what the image of a pool is built from, before a change and after it.
 */
export function imageInputs(
  pool: string,
  { before, after }: { readonly before: Side; readonly after: Side },
  { builds, asked, architectures, base: coming }: Known,
): { readonly was: ImageInputs; readonly will: ImageInputs } {
  const [was, will] = [inputsOf(before, pool), inputsOf(after, pool)];
  const { machineOSConfig } = was;
  const name = requestedOf(was);
  const base = name && machineOSConfig && builtBase(machineOSConfig, builds, name, architectures);
  const lookups = lookupsAround(asked, name && base ? { name, base } : undefined);
  const tree = coming?.kind === 'answer' ? coming.value : undefined;
  return {
    was: { ...was, lookups: lookups.before },
    will: { ...will, lookups: lookups.after, tree },
  };
}

interface Known {
  readonly builds: readonly MachineOSBuild[];
  readonly asked: BaseLookups;
  readonly architectures: readonly string[];
  readonly base: ReturnType<PoolTrees['get']>;
}

function inputsOf(
  { cluster: { machineOSConfigs }, rendered, configs, policies }: Side,
  pool: string,
): ImageInputs {
  return {
    rendered,
    configs,
    machineOSConfig: machineOSConfigs.find(({ spec }) => spec.machineConfigPool.name === pool),
    policyDigest: policyDigest(policies),
  };
}
