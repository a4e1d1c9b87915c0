import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import type { MachineOSConfig } from '../../api/machine-os-config.ts';
import { isByDigest, repositoryOf } from '../../api/references.ts';
import { otherOwnerMessage } from '../../api/repository-owner.ts';
import type { PoolRecord } from './pool-record.ts';

/**
 * Whether the image of a build may be recorded. MachineOSBuilds and their statuses are written by the builder: who has
 * its token can claim any image there. So an image counts only from the repository that the MachineOSConfig names,
 * which no builder writes, on the base image that was requested, and if the operator computes the same one
 * (image-proof.ts).
 */

/** What the check of an image found, where it may not be recorded yet. */
export interface ImageCheck {
  /** `refused` is final: an image by digest never changes. `unreadable`: it is tried again. */
  readonly kind: 'refused' | 'unreadable';
  readonly why: string;
}

export interface RequestedImage {
  readonly machineOSConfig: MachineOSConfig;
  /** The pool to whom the repository belongs; absent if it is this pool's own (api/repository-owner.ts). */
  readonly repositoryOwner?: string | undefined;
  readonly rendered: MachineConfig;
}

/**
 * Compares a build that succeeded with what was requested.
 *
 * @returns why its image may not be recorded; undefined if the proof decides.
 */
export function buildRefusal(
  build: MachineOSBuild,
  { machineOSConfig, repositoryOwner, rendered }: RequestedImage,
): string | undefined {
  const elsewhere = repositoryRefusal(build, machineOSConfig, repositoryOwner);
  if (elsewhere !== undefined) return elsewhere;
  const base = rendered.spec.osImageURL || machineOSConfig.spec.baseImage || undefined;
  if (base === undefined) return undefined;
  const built = build.spec.baseImage ?? 'none';
  const same = isByDigest(base) ? built === base : repositoryOf(built) === repositoryOf(base);
  return same ? undefined : `it is based on ${built}; expected ${base}`;
}

/**
 * Compares a build that labelled again what a rollback holds a pool at with what the operator recorded. What the
 * MachineOSConfig requests by now doesn't matter.
 *
 * @returns why its image may not be recorded; undefined if the proof decides.
 */
export function relabelRefusal(
  build: MachineOSBuild,
  {
    machineOSConfig,
    repositoryOwner,
    record,
  }: Omit<RequestedImage, 'rendered'> & { readonly record: PoolRecord },
): string | undefined {
  const elsewhere = repositoryRefusal(build, machineOSConfig, repositoryOwner);
  if (elsewhere !== undefined) return elsewhere;
  const { spec, status } = build;
  const { name } = spec.machineConfig;
  const isOnRecordedBase = record.some(
    ({ spec: { machineConfig, baseImage } }) =>
      machineConfig.name === name && baseImage !== undefined && baseImage === status?.baseImage,
  );
  return isOnRecordedBase
    ? undefined
    : `it is based on ${status?.baseImage ?? 'none'}, and the record of the pool has no image of ${name} on that`;
}

function repositoryRefusal(
  { status }: MachineOSBuild,
  machineOSConfig: MachineOSConfig,
  repositoryOwner: string | undefined,
): string | undefined {
  if (repositoryOwner !== undefined) return otherOwnerMessage(machineOSConfig, repositoryOwner);
  const requested = repositoryOf(machineOSConfig.spec.renderedImagePushSpec);
  const pushed = repositoryOf(status?.digestedImagePushSpec ?? '');
  return pushed === requested
    ? undefined
    : `its image is in repository ${pushed}; expected ${requested}, which the MachineOSConfig names`;
}
