import { outcomeOf } from '../../api/build-outcome.ts';
import type { MachineConfigNodeStatus } from '../../api/machine-config-node.ts';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import { isByDigest } from '../../api/references.ts';
import { baseImagesOf } from '../../disruption/label-coverage.ts';
import { imagesOfBase } from '../image/base-lookup.ts';
import { baseOf, type ImageInputs } from '../image/image-to-build.ts';
import { mayNeedEngine } from '../image/layered-pool.ts';
import { requestedBase } from '../image/requested-image.ts';

/** The base images between which a node moves, as far as the cluster's objects tell. */
export interface NodeBases {
  readonly fromBase: string;
  readonly toBase: string;
}

/**
 * The base image that one node of a pool has, and the one that it will have. Nodes that are behind have another than
 * the pool's last rendered config asks for, so that for them a change of nothing else is a reboot.
 *
 * A requested base may be an index, of which each architecture has an image of its own: a build that was made on it
 * says which those are, and so does the registry where a tag was looked up.
 *
 * @param builds of the pool.
 * @returns undefined where they are not known; what the pool's two renderings say decides then.
 */
export function nodeBases(
  node: MachineConfigNodeStatus,
  to: ImageInputs,
  builds: readonly MachineOSBuild[],
): NodeBases | undefined {
  const { rendered, machineOSConfig } = to;
  const { baseImage: fromBase, mode } = node;
  if (fromBase === undefined || rendered === undefined) return undefined;
  if (machineOSConfig === undefined) {
    // Without an osImageURL the node keeps the system that it has.
    return mode === 'Standard' ? { fromBase, toBase: rendered.spec.osImageURL || fromBase } : undefined;
  }
  // The base that such a node reports is what the container engine made, and no object says of which image.
  if (mode !== 'Layered' || mayNeedEngine(machineOSConfig.spec, rendered, ['amd64', 'arm64']))
    return undefined;
  const [requested, base] = [requestedBase(machineOSConfig, rendered), baseOf(to)];
  if (requested === undefined || base === undefined || !isByDigest(base)) return undefined;
  const built = builds
    .filter(({ spec }) => spec.baseImage === base)
    .filter((build) => outcomeOf(build) === 'Succeeded')
    .flatMap((build) => [...baseImagesOf(build)])
    .filter((base) => base !== undefined);
  const images = [...imagesOfBase(requested, to.lookups), ...built];
  const [toBase] = images;
  if (toBase === undefined) return undefined;
  return { fromBase, toBase: images.includes(fromBase) ? fromBase : toBase };
}
