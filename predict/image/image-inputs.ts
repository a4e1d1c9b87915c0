import type { ClusterPolicies } from '../../api/disruption-policy.ts';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import { policyDigest } from '../../disruption/effective-policies.ts';
import type { BaseContent } from '../../machineconfig/base-tree.ts';
import type { OfflineCluster } from '../objects/offline-cluster.ts';
import { type BaseLookups, builtBase, lookupsAround, type PoolTrees, pinnedBase } from './base-lookup.ts';

/** What the builder builds a pool's image from. */
export interface ImageInputs {
  /** Undefined when no config was rendered for the pool. */
  readonly rendered: MachineConfig | undefined;
  /** What it was rendered from, which problems name; absent where that is not known. */
  readonly configs?: readonly MachineConfig[] | undefined;
  /** Undefined when the pool is not layered. */
  readonly machineOSConfig: MachineOSConfig | undefined;
  readonly policyDigest: string;
  /** What the tags of base images stand for, as far as it is known. */
  readonly lookups?: BaseLookups;
  /** What the base image consists of, where that is known. */
  readonly tree?: BaseContent | undefined;
}

/**
 * @returns the base image as requested, by tag or digest; undefined where none is requested, or the pool is not
 * layered.
 */
export function requestedOf({
  machineOSConfig,
  rendered,
}: Pick<ImageInputs, 'machineOSConfig' | 'rendered'>): string | undefined {
  return machineOSConfig && requestedBase(machineOSConfig, rendered);
}

/** @returns the base image as requested, by tag or digest; that of a MachineConfig wins. */
export function requestedBase(
  { spec }: { readonly spec: Pick<Partial<MachineOSConfig['spec']>, 'baseImage'> },
  rendered: MachineConfig | undefined,
): string | undefined {
  return rendered?.spec.osImageURL || spec.baseImage || undefined;
}

/** @returns the base image of a pool's image, by digest where that is known; undefined where none is requested. */
export function baseOf(inputs: ImageInputs): string | undefined {
  const requested = requestedOf(inputs);
  return requested && pinnedBase(requested, inputs.lookups);
}

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
