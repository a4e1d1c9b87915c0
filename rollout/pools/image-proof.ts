import type { MachineConfig } from '../../api/machine-config.ts';
import type { BaseRecord, MachineOSBuild } from '../../api/machine-os-build.ts';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import type { PoolRevision } from '../../api/pool-revision.ts';
import type { PoliciesInForce } from '../../disruption/pool-policies.ts';

/** An image that a build claims, and what the operator itself knows of what it has to be. */
export interface ImageClaim {
  /** Written by the builder: it says where the image is. */
  readonly build: MachineOSBuild;
  readonly machineOSConfig: MachineOSConfig;
  /** The rendered config that the image has to have. */
  readonly rendered: MachineConfig;
  /** The disruption policies of the pool; undefined before the operator has found them out. */
  readonly inForce: PoliciesInForce | undefined;
  /** Rendered configs by name, from which the image's label has transitions. */
  readonly configs: (name: string) => MachineConfig | undefined;
  /** What the nodes of the pool may run, of which only the operator writes. */
  readonly record: readonly PoolRevision[];
  /**
   * Whether it has to be on a base of the record, as an image that the pool is rolled back to, and not on the one
   * that is requested now.
   */
  readonly isRollback: boolean;
  /** Public keys that nodes accept, by name; none if signing is disabled. */
  readonly signingKeys: Readonly<Record<string, string>>;
}

/** What the operator found out about an image by computing it again. */
export interface ProvenImage {
  /** By digest. */
  readonly baseImage: string;
  readonly baseRecords: readonly BaseRecord[];
  readonly engineImages: readonly string[];
}

export type ImageProof =
  | ({ readonly kind: 'proven' } & ProvenImage)
  /** `why`: what of the image is not what it has to be. */
  | { readonly kind: 'refused'; readonly why: string };

/**
 * Computes what an image has to be, and compares: an image that was appended is a function of the rendered config, the
 * base and the policies. Its builder, the key that signed it and the registry are not believed.
 *
 * @throws what the registry or its Secret makes impossible; asked again later.
 */
export type ProveImage = (claim: ImageClaim, signal: AbortSignal) => Promise<ImageProof>;
